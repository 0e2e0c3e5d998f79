import { isTimestamp } from '../formats/timestamps';
import { InvalidValue } from './input-values';
import { RoundedNumber } from './json';

/** Reads a value of a query, a form or a JSON body. The pipe waits for a promise. */
export type Reader<T> = (given: unknown) => T | InvalidValue;

const INTEGER = /^(0|[1-9]\d{0,18})$/;
const INT8_MAX = 9223372036854775807n;
const LONE_SURROGATE = /\p{Surrogate}/u;
const JSON_NUMBER = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const MAX_DIGITS = 19;

/** The digits of an integer: 1000 for `1e3`. */
function parseDigits(source: string): string | undefined {
  const [, whole, fraction = '', exponent = '0'] = JSON_NUMBER.exec(source) ?? [];
  if (whole === undefined) return undefined;
  const digits = (whole + fraction).replace(/^0+(?=\d)/, '');
  const shift = Number(exponent) - fraction.length;
  if (digits === '0' || shift === 0) return digits;
  if (shift > 0) return shift > MAX_DIGITS ? undefined : digits + '0'.repeat(shift);
  return /^0*$/.test(digits.slice(shift)) ? digits.slice(0, shift) : undefined;
}

/** The JSON text of a number, or undefined for another type. */
function numberText(given: unknown): string | undefined {
  if (given instanceof RoundedNumber) return given.source;
  if (typeof given === 'number') return Object.is(given, -0) ? '-0' : String(given);
  return undefined;
}

/** The value as the text of a form, or undefined for another type. */
export function asText(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  const number = numberText(given);
  return number === undefined ? undefined : parseDigits(number);
}

/** IDs above 2^53 become 0, which no row has. Rounding could turn them into the ID of another row. */
export const readInteger: Reader<number> = (given) => {
  const digits = asText(given);
  if (digits !== undefined && INTEGER.test(digits)) {
    const value = Number(digits);
    if (Number.isSafeInteger(value)) return value;
    if (BigInt(digits) <= INT8_MAX) return 0;
  }
  return new InvalidValue('must be an integer');
};

const AMOUNT = 'must be between 0 and 9007199254740991';

/** Reads whole minor units. Unlike an ID, an amount that is too large must never be read as another one. */
export const readAmount: Reader<number> = (given) => {
  if (/^-\d+$/.test(typeof given === 'string' ? given : (numberText(given) ?? '')))
    return new InvalidValue(AMOUNT);
  const digits = asText(given);
  if (digits === undefined || !/^(0|[1-9]\d*)$/.test(digits)) return new InvalidValue('must be an integer');
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : new InvalidValue(AMOUNT);
};

const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,3})?$/;

export const readNumber: Reader<number> = (given) => {
  const text = typeof given === 'string' ? given : numberText(given);
  return text !== undefined && DECIMAL.test(text) ? Number(text) : new InvalidValue('must be a number');
};

export const readTimestamp: Reader<string> = (given) =>
  typeof given === 'string' && isTimestamp(given)
    ? given
    : new InvalidValue('must be a timestamp such as 2013-03-03T23:02:14Z');

export const readBoolean: Reader<boolean> = (given) => {
  if (typeof given === 'boolean') return given;
  const text = asText(given)?.toLowerCase() ?? '';
  if (['true', '1', 'on', 'yes'].includes(text)) return true;
  if (['false', '0', 'off', 'no'].includes(text)) return false;
  return new InvalidValue('must be a boolean');
};

/** A boolean. If it is true, upload tools send only its name. */
export const readMark: Reader<boolean> = (given) => (given === '' ? true : readBoolean(given));

/** Whether the database can store the text unchanged. */
export const isStorable = (text: string) => !text.includes('\0') && !LONE_SURROGATE.test(text);

export const notStorable = () => new InvalidValue('must be valid Unicode text without NUL');

export const readText: Reader<string> = (given) => {
  if (typeof given !== 'string') return new InvalidValue('must be a string');
  return isStorable(given) ? given : notStorable();
};

export const readNonEmptyText: Reader<string> = (given) => {
  const text = readText(given);
  return text === '' ? new InvalidValue('must not be empty') : text;
};

/** Removes the whitespace around the text. */
export const readTrimmedText: Reader<string> = (given) => {
  const text = readText(given);
  return text instanceof InvalidValue ? text : readNonEmptyText(text.trim());
};

// Whitespace, default-ignorable characters, interlinear annotations and the empty Braille pattern.
const INVISIBLE = /^[\p{Z}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800]*$/u;

/** Removes the whitespace around the text. The result is empty if all characters are invisible. */
export const readTitle: Reader<string> = (given) => {
  const text = readText(given);
  if (typeof text !== 'string') return text;
  const title = text.trim();
  return INVISIBLE.test(title) ? '' : title;
};

/** An empty text clears the value, as null does. */
export const readClearableText: Reader<string | null> = (given) => {
  const text = readText(given);
  return text === '' ? null : text;
};

/** An email address. Only lookups of the public API read a space inside as `+`. */
export const readEmailAddress: Reader<string> = (given) => {
  const text = readNonEmptyText(given);
  if (text instanceof InvalidValue) return text;
  const trimmed = text.trim();
  return /^[^\s@]+@[^\s@]+$/.test(trimmed) ? trimmed : new InvalidValue('must be an email address');
};

// Old clients send the + of an email address unescaped, which a form decodes to a space.
export const readEmail: Reader<string> = (given) => {
  const text = readNonEmptyText(given);
  return text instanceof InvalidValue ? text : text.replaceAll(' ', '+');
};

// JSON's whitespace is less than \s. Adjacent parts match different characters, so matching takes linear
// time.
const LIST_OF_INTEGERS =
  /^[ \t\r\n]*\[[ \t\r\n]*(?:\d+[ \t\r\n]*(?:,[ \t\r\n]*\d+[ \t\r\n]*)*)?\][ \t\r\n]*$/;
export const MAX_IDS = 500;
// Four times the longest list of 500 IDs: matching a longer text would take milliseconds.
const MAX_LIST_CHARACTERS = 40_000;

export const readIdList: Reader<number[]> = (given) => {
  const notAList = new InvalidValue('must be a JSON array of integers');
  const tooMany = new InvalidValue(`must have at most ${MAX_IDS} ids`);
  let digits: unknown[];
  if (typeof given === 'string') {
    if (given.length > MAX_LIST_CHARACTERS) return tooMany;
    if (!LIST_OF_INTEGERS.test(given)) return notAList;
    digits = given.match(/\d+/g) ?? [];
  } else if (Array.isArray(given)) digits = given;
  else return notAList;
  if (digits.length > MAX_IDS) return tooMany;
  const ids: number[] = [];
  for (const digit of digits) {
    const id = readInteger(digit);
    if (id instanceof InvalidValue) return notAList;
    ids.push(id);
  }
  // Compared as text: different IDs above 2^53 are all 0 in `ids`.
  if (new Set(digits.map(asText)).size < digits.length)
    return new InvalidValue('must not contain an id twice');
  return ids;
};

/** One ID, or a list of IDs that is not empty. */
export const readIdOrIds: Reader<number | number[]> = (given) => {
  const isList = Array.isArray(given) || (typeof given === 'string' && /^[ \t\r\n]*\[/.test(given));
  const ids = isList ? readIdList(given) : readInteger(given);
  if (Array.isArray(ids) && ids.length === 0) return new InvalidValue('must not be empty');
  return ids;
};
