import { timestampProblem } from '../formats/timestamps';
import { InvalidValue } from './input-values';
import { RoundedNumber } from './json';

/** Reads a value of a query, a form or a JSON body. The pipe waits for a promise. */
export type Reader<T> = (input: unknown) => T | InvalidValue;

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
function numberText(input: unknown): string | undefined {
  if (input instanceof RoundedNumber) return input.source;
  if (typeof input === 'number') return Object.is(input, -0) ? '-0' : String(input);
  return undefined;
}

/** The value as the text of a form, or undefined for another type. */
export function asText(input: unknown): string | undefined {
  if (typeof input === 'string') return input;
  const number = numberText(input);
  return number === undefined ? undefined : parseDigits(number);
}

/** IDs above 2^53 become 0, which no row has. Rounding could turn them into the ID of another row. */
export const readInteger: Reader<number> = (input) => {
  const digits = asText(input);
  if (digits !== undefined && INTEGER.test(digits)) {
    const value = Number(digits);
    if (Number.isSafeInteger(value)) return value;
    if (BigInt(digits) <= INT8_MAX) return 0;
  }
  return new InvalidValue('must be an integer');
};

const AMOUNT = 'must be between 0 and 9007199254740991';

/** Reads whole minor units. Unlike an ID, an amount that is too large must never be read as another one. */
export const readAmount: Reader<number> = (input) => {
  if (/^-\d+$/.test(typeof input === 'string' ? input : (numberText(input) ?? '')))
    return new InvalidValue(AMOUNT);
  const digits = asText(input);
  if (digits === undefined || !/^(0|[1-9]\d*)$/.test(digits)) return new InvalidValue('must be an integer');
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : new InvalidValue(AMOUNT);
};

const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,3})?$/;

export const readNumber: Reader<number> = (input) => {
  const text = typeof input === 'string' ? input : numberText(input);
  return text !== undefined && DECIMAL.test(text) ? Number(text) : new InvalidValue('must be a number');
};

export const readTimestamp: Reader<string> = (input) => {
  const problem = timestampProblem(input);
  return problem === undefined ? (input as string) : new InvalidValue(problem);
};

export const readBoolean: Reader<boolean> = (input) => {
  if (typeof input === 'boolean') return input;
  const text = asText(input)?.toLowerCase() ?? '';
  if (['true', '1', 'on', 'yes'].includes(text)) return true;
  if (['false', '0', 'off', 'no'].includes(text)) return false;
  return new InvalidValue('must be a boolean');
};

/** A boolean. If it is true, upload tools send only its name. */
export const readMark: Reader<boolean> = (input) => (input === '' ? true : readBoolean(input));

/** Whether the database can store the text unchanged. */
export const isStorable = (text: string) => !text.includes('\0') && !LONE_SURROGATE.test(text);

export const notStorable = () => new InvalidValue('must be valid Unicode text without NUL');

export const readText: Reader<string> = (input) => {
  if (typeof input !== 'string') return new InvalidValue('must be a string');
  return isStorable(input) ? input : notStorable();
};

export const readNonEmptyText: Reader<string> = (input) => {
  const text = readText(input);
  return text === '' ? new InvalidValue('must not be empty') : text;
};

/** Removes the whitespace around the text. */
export const readTrimmedText: Reader<string> = (input) => {
  const text = readText(input);
  return text instanceof InvalidValue ? text : readNonEmptyText(text.trim());
};

// Whitespace, default-ignorable characters, interlinear annotations and the empty Braille pattern.
const INVISIBLE = /^[\p{Z}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800]*$/u;

/** Removes the whitespace around the text. The result is empty if all characters are invisible. */
export const readTitle: Reader<string> = (input) => {
  const text = readText(input);
  if (typeof text !== 'string') return text;
  const title = text.trim();
  return INVISIBLE.test(title) ? '' : title;
};

/** An empty text clears the value, as null does. */
export const readClearableText: Reader<string | null> = (input) => {
  const text = readText(input);
  return text === '' ? null : text;
};

/** An email address. Only lookups of the public API read a space inside as `+`. */
export const readEmailAddress: Reader<string> = (input) => {
  const text = readNonEmptyText(input);
  if (text instanceof InvalidValue) return text;
  const trimmed = text.trim();
  return /^[^\s@]+@[^\s@]+$/.test(trimmed) ? trimmed : new InvalidValue('must be an email address');
};

// Old clients send the + of an email address unescaped, which a form decodes to a space.
export const readEmail: Reader<string> = (input) => {
  const text = readNonEmptyText(input);
  return text instanceof InvalidValue ? text : text.replaceAll(' ', '+');
};

// JSON's whitespace is less than \s. Adjacent parts match different characters, so matching takes linear
// time.
const LIST_OF_INTEGERS =
  /^[ \t\r\n]*\[[ \t\r\n]*(?:\d+[ \t\r\n]*(?:,[ \t\r\n]*\d+[ \t\r\n]*)*)?\][ \t\r\n]*$/;
export const MAX_IDS = 500;
// Four times the longest list of 500 IDs: matching a longer text would take milliseconds.
const MAX_LIST_CHARACTERS = 40_000;

export const readIdList: Reader<number[]> = (input) => {
  const notAList = new InvalidValue('must be a JSON array of integers');
  const tooMany = new InvalidValue(`must have at most ${MAX_IDS} ids`);
  let digits: unknown[];
  if (typeof input === 'string') {
    if (input.length > MAX_LIST_CHARACTERS) return tooMany;
    if (!LIST_OF_INTEGERS.test(input)) return notAList;
    digits = input.match(/\d+/g) ?? [];
  } else if (Array.isArray(input)) digits = input;
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
export const readIdOrIds: Reader<number | number[]> = (input) => {
  const isList = Array.isArray(input) || (typeof input === 'string' && /^[ \t\r\n]*\[/.test(input));
  const ids = isList ? readIdList(input) : readInteger(input);
  if (Array.isArray(ids) && ids.length === 0) return new InvalidValue('must not be empty');
  return ids;
};
