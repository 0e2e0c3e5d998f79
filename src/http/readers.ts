/** What a reader found wrong: the rest of a sentence that begins with the parameter's name. */
export class Unreadable {
  constructor(readonly problem: string) {}
}

export type Reader<T> = (given: unknown) => T | Unreadable;

const INTEGER = /^(0|[1-9]\d{0,18})$/;
const INT8_MAX = 9223372036854775807n;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Well-formed ids that a number cannot hold become 0, which no row has: they are not found, and never another id.
 */
function integerOf(digits: string): number | undefined {
  if (!INTEGER.test(digits)) return undefined;
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  return BigInt(digits) <= INT8_MAX ? 0 : undefined;
}

function integerOfNumber(value: number): number | undefined {
  if (!Number.isInteger(value) || value < 0 || Object.is(value, -0) || value >= 2 ** 63) return undefined;
  return Number.isSafeInteger(value) ? value : 0;
}

const isText = (given: unknown): given is string =>
  typeof given === 'string' && !given.includes('\0') && !LONE_SURROGATE.test(given);

export const readInteger: Reader<number> = (given) => {
  const value =
    typeof given === 'string'
      ? integerOf(given)
      : typeof given === 'number'
        ? integerOfNumber(given)
        : undefined;
  return value ?? new Unreadable('must be an integer');
};

/** A number of something, of which more than a number can hold is as many as it can. */
export const readCount: Reader<number> = (given) => {
  const value = readInteger(given);
  return value === 0 && BigInt(given as string | number) > 0n ? Number.MAX_SAFE_INTEGER : value;
};

const BOOLEANS = new Map<unknown, boolean>([
  ['true', true],
  ['1', true],
  ['on', true],
  ['yes', true],
  ['false', false],
  ['0', false],
  ['off', false],
  ['no', false],
]);

export const readBoolean: Reader<boolean> = (given) => {
  if (typeof given === 'boolean') return given;
  const word = typeof given === 'number' ? String(given) : given;
  const value = typeof word === 'string' ? BOOLEANS.get(word.toLowerCase()) : undefined;
  return value ?? new Unreadable('must be a boolean');
};

export const readText: Reader<string> = (given) => {
  if (typeof given !== 'string') return new Unreadable('must be a string');
  return isText(given) ? given : new Unreadable('must be valid Unicode text without NUL');
};

/** A text that selects something: an empty one would select by nothing. */
export const readSelector: Reader<string> = (given) => {
  const text = readText(given);
  return text === '' ? new Unreadable('must not be empty') : text;
};

// Old clients send the + of an address unescaped, which a form decodes to a space.
export const readEmail: Reader<string> = (given) => {
  const text = readSelector(given);
  return text instanceof Unreadable ? text : text.replaceAll(' ', '+');
};

// Blanks as JSON has them, which \s has more of. No two neighbours match the same character: text that is no list is
// refused in time that grows with its length.
const LIST_OF_INTEGERS =
  /^[ \t\r\n]*\[[ \t\r\n]*(?:\d+[ \t\r\n]*(?:,[ \t\r\n]*\d+[ \t\r\n]*)*)?\][ \t\r\n]*$/;
const MAX_IDS = 500;

export const readIdList: Reader<number[]> = (given) => {
  const notAList = new Unreadable('must be a JSON array of integers');
  let digits: unknown[];
  if (typeof given === 'string') {
    if (!LIST_OF_INTEGERS.test(given)) return notAList;
    digits = given.match(/\d+/g) ?? [];
  } else if (Array.isArray(given)) digits = given;
  else return notAList;
  if (digits.length > MAX_IDS) return new Unreadable(`must have at most ${MAX_IDS} ids`);
  const ids: number[] = [];
  for (const digit of digits) {
    const id = readInteger(digit);
    if (id instanceof Unreadable) return notAList;
    ids.push(id);
  }
  // Compared as they were sent: two different ids beyond 2^53 are both 0 by now.
  if (new Set(digits.map(String)).size < digits.length) return new Unreadable('must not contain an id twice');
  return ids;
};
