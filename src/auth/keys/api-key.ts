import { type BinaryLike, createHmac, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Settings } from '../../platform/config/settings';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
// log2(62 ** 32) is 190 bits.
const RANDOM_CHARACTERS = 32;
const CHECKSUM_CHARACTERS = 6;
const GENERATED_KEY = /^gw_[0-9A-Za-z]{38}$/;
const MAX_KEY_CHARACTERS = 512;

const base62 = (value: number): string =>
  value < 62 ? ALPHABET[value]! : base62(Math.floor(value / 62)) + ALPHABET[value % 62]!;

const computeChecksum = (text: string) => base62(crc32(text)).padStart(CHECKSUM_CHARACTERS, '0');

/** A prefix for secret scanners, 190 random bits, and a checksum that shows typing errors. */
function newSecret(prefix: string): string {
  const random = Array.from({ length: RANDOM_CHARACTERS }, () => ALPHABET[randomInt(62)]).join('');
  return prefix + random + computeChecksum(prefix + random);
}

export const newApiKey = (): string => newSecret('gw_');
export const newOperatorToken = (): string => newSecret('gwo_');

/** Whether the text can be a key: imported keys have any format, generated ones a valid checksum. */
export const mayBeApiKey = (text: string): boolean =>
  text.length <= 2 * MAX_KEY_CHARACTERS &&
  (!GENERATED_KEY.test(text) ||
    computeChecksum(text.slice(0, -CHECKSUM_CHARACTERS)) === text.slice(-CHECKSUM_CHARACTERS));

/** The first characters of a key, by which its owner recognizes it in a list. */
export function keyHint(key: string): string {
  const characters = [...key];
  return characters.slice(0, Math.min(8, Math.floor(characters.length / 3))).join('');
}

/** Only this hash is stored. Without the pepper, which is not in the database, a stolen table is useless. */
export const hashApiKey = (key: string, pepper: BinaryLike): Buffer =>
  createHmac('sha256', pepper).update(key).digest();

/** The peppers of the store, the current one first. An operator may have listed it as a previous one too. */
export const listPeppers = ({ API_KEY_PEPPER = '', API_KEY_PEPPER_PREVIOUS }: Settings): string[] => [
  ...new Set([API_KEY_PEPPER, ...API_KEY_PEPPER_PREVIOUS]),
];
