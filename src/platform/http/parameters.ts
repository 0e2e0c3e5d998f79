import 'reflect-metadata';
import { registerDecorator } from 'class-validator';
import { isTimestamp } from '../formats/timestamps';
import { JsonNumber } from './body';

/** The problem of a value, as a text to follow the parameter's name. */
export class Unreadable {
  constructor(readonly problem: string) {}
}

export type Reader<T> = (given: unknown) => T | Unreadable;

const INTEGER = /^(0|[1-9]\d{0,18})$/;
const INT8_MAX = 9223372036854775807n;
const LONE_SURROGATE = /\p{Surrogate}/u;
const JSON_NUMBER = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const MAX_DIGITS = 19;

/** The digits of an integral number: 1000 for `1e3`. */
function digitsOf(source: string): string | undefined {
  const [, whole, fraction = '', exponent = '0'] = JSON_NUMBER.exec(source) ?? [];
  if (whole === undefined) return undefined;
  const digits = (whole + fraction).replace(/^0+(?=\d)/, '');
  const shift = Number(exponent) - fraction.length;
  if (digits === '0' || shift === 0) return digits;
  if (shift > 0) return shift > MAX_DIGITS ? undefined : digits + '0'.repeat(shift);
  return /^0*$/.test(digits.slice(shift)) ? digits.slice(0, shift) : undefined;
}

/** The value as the text of a form; undefined: another type. */
export function asText(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  if (given instanceof JsonNumber) return digitsOf(given.source);
  return typeof given === 'number' ? digitsOf(String(given)) : undefined;
}

/** Ids above 2^53 become 0, which no row has: they are not found, and never rounded to another id. */
export const readInteger: Reader<number> = (given) => {
  const digits = asText(given);
  if (digits !== undefined && INTEGER.test(digits)) {
    const value = Number(digits);
    if (Number.isSafeInteger(value)) return value;
    if (BigInt(digits) <= INT8_MAX) return 0;
  }
  return new Unreadable('must be an integer');
};

const AMOUNT = 'must be between 0 and 9007199254740991';

/** Whole minor units. Unlike an id, an amount that is too large must never be read as another one. */
const readAmount: Reader<number> = (given) => {
  const text = given instanceof JsonNumber ? given.source : given;
  if (typeof text === 'string' && /^-\d+$/.test(text)) return new Unreadable(AMOUNT);
  const digits = asText(given);
  if (digits === undefined || !/^(0|[1-9]\d*)$/.test(digits)) return new Unreadable('must be an integer');
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : new Unreadable(AMOUNT);
};

const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,3})?$/;

const readNumber: Reader<number> = (given) => {
  const text = given instanceof JsonNumber ? given.source : given;
  return typeof text === 'string' && DECIMAL.test(text) ? Number(text) : new Unreadable('must be a number');
};

const readTimestamp: Reader<string> = (given) =>
  typeof given === 'string' && isTimestamp(given)
    ? given
    : new Unreadable('must be a timestamp such as 2013-03-03T23:02:14Z');

export const readBoolean: Reader<boolean> = (given) => {
  if (typeof given === 'boolean') return given;
  const text = asText(given)?.toLowerCase() ?? '';
  if (['true', '1', 'on', 'yes'].includes(text)) return true;
  if (['false', '0', 'off', 'no'].includes(text)) return false;
  return new Unreadable('must be a boolean');
};

export const readText: Reader<string> = (given) => {
  if (typeof given !== 'string') return new Unreadable('must be a string');
  if (!given.includes('\0') && !LONE_SURROGATE.test(given)) return given;
  return new Unreadable('must be valid Unicode text without NUL');
};

/** A text that may not be empty. */
export const readSelector: Reader<string> = (given) => {
  const text = readText(given);
  return text === '' ? new Unreadable('must not be empty') : text;
};

/** An email address. Only lookups of the public API read a space inside as `+`. */
export const readEmailAddress: Reader<string> = (given) => {
  const text = readSelector(given);
  if (text instanceof Unreadable) return text;
  const trimmed = text.trim();
  return /^[^\s@]+@[^\s@]+$/.test(trimmed) ? trimmed : new Unreadable('must be an email address');
};

// Old clients send the + of an address unescaped, which a form decodes to a space.
export const readEmail: Reader<string> = (given) => {
  const text = readSelector(given);
  return text instanceof Unreadable ? text : text.replaceAll(' ', '+');
};

// JSON's white space, which is less than \s. Adjacent parts match different characters, so matching takes linear time.
const LIST_OF_INTEGERS =
  /^[ \t\r\n]*\[[ \t\r\n]*(?:\d+[ \t\r\n]*(?:,[ \t\r\n]*\d+[ \t\r\n]*)*)?\][ \t\r\n]*$/;
export const MAX_IDS = 500;
// Four times the longest list of 500 ids: matching a longer text would take milliseconds.
const MAX_LIST_TEXT = 40_000;

export const readIdList: Reader<number[]> = (given) => {
  const notAList = new Unreadable('must be a JSON array of integers');
  const tooMany = new Unreadable(`must have at most ${MAX_IDS} ids`);
  let digits: unknown[];
  if (typeof given === 'string') {
    if (given.length > MAX_LIST_TEXT) return tooMany;
    if (!LIST_OF_INTEGERS.test(given)) return notAList;
    digits = given.match(/\d+/g) ?? [];
  } else if (Array.isArray(given)) digits = given;
  else return notAList;
  if (digits.length > MAX_IDS) return tooMany;
  const ids: number[] = [];
  for (const digit of digits) {
    const id = readInteger(digit);
    if (id instanceof Unreadable) return notAList;
    ids.push(id);
  }
  // Compared as text: different ids above 2^53 are all 0 in `ids`.
  if (new Set(digits.map(asText)).size < digits.length) return new Unreadable('must not contain an id twice');
  return ids;
};

/** One id, or a list of ids that is not empty. */
const readIdOrIds: Reader<number | number[]> = (given) => {
  const isList = Array.isArray(given) || (typeof given === 'string' && /^[ \t\r\n]*\[/.test(given));
  const ids = isList ? readIdList(given) : readInteger(given);
  if (Array.isArray(ids) && ids.length === 0) return new Unreadable('must not be empty');
  return ids;
};

/** A parameter of a request class. */
export interface Parameter {
  name: string;
  in: 'path' | 'request';
  required: boolean;
  /** A guard may read it from a header. */
  mayBeInHeader: boolean;
  read: Reader<unknown>;
  /** The keywords of its kind; class-validator's decorators add the others. `nullable`: null clears it. */
  schema: Record<string, unknown>;
  description: string;
}

export interface Declared {
  parameters: Parameter[];
  exactlyOneOf?: string[];
  atLeastOneOf?: string[];
}

export type RequestClass = new () => object;

const DECLARED = 'gamewharf:parameters';

/** What the class declares, and what it inherits. */
function declarationOf(prototype: object): Declared {
  if (!Reflect.hasOwnMetadata(DECLARED, prototype)) {
    const inherited = Reflect.getMetadata(DECLARED, prototype) as Declared | undefined;
    const own = { ...inherited, parameters: [...(inherited?.parameters ?? [])] };
    Reflect.defineMetadata(DECLARED, own, prototype);
  }
  return Reflect.getOwnMetadata(DECLARED, prototype) as Declared;
}

export const parametersOf = (request: RequestClass): Declared => declarationOf(request.prototype as object);

interface Options {
  in?: 'path';
  required?: boolean;
  mayBeInHeader?: boolean;
  default?: unknown;
  example?: unknown;
}

/** Creates the decorator for a kind of parameter. */
export const parameter =
  (read: Reader<unknown>, schema: Record<string, unknown>) =>
  (
    description: string,
    { in: place, required, mayBeInHeader = false, ...more }: Options = {},
  ): PropertyDecorator =>
  (prototype, name) => {
    declarationOf(prototype).parameters.push({
      name: String(name),
      in: place ?? 'request',
      required: required ?? place === 'path',
      mayBeInHeader,
      read,
      schema: { ...schema, ...more },
      description,
    });
  };

const ID = { type: 'integer', format: 'int64', minimum: 0 };
const IDS = { type: 'array', items: ID, maxItems: MAX_IDS, uniqueItems: true };
export const IntegerParameter = parameter(readInteger, ID);
export const BooleanParameter = parameter(readBoolean, { type: 'boolean' });
export const TextParameter = parameter(readText, { type: 'string' });
export const SelectorParameter = parameter(readSelector, { type: 'string', minLength: 1 });
export const EmailParameter = parameter(readEmail, { type: 'string', minLength: 1 });
export const EmailAddressParameter = parameter(readEmailAddress, { type: 'string', minLength: 1 });
export const AmountParameter = parameter(readAmount, ID);
export const NumberParameter = parameter(readNumber, { type: 'number' });
export const TimestampParameter = parameter(readTimestamp, { type: 'string', format: 'date-time' });
export const IdListParameter = parameter(readIdList, IDS);
export const IdOrIdsParameter = parameter(readIdOrIds, { oneOf: [ID, { ...IDS, minItems: 1 }] });

/** On a request class: exactly one of these parameters is required. */
export const ExactlyOneOf =
  (...names: string[]): ClassDecorator =>
  (request) => {
    declarationOf(request.prototype as object).exactlyOneOf = names;
  };

/** On a request class: at least one of these parameters is required. */
export const AtLeastOneOf =
  (...names: string[]): ClassDecorator =>
  (request) => {
    declarationOf(request.prototype as object).atLeastOneOf = names;
  };

// Code points have one or two units, so most texts need no counting.
const fits = (text: string, max: number) =>
  text.length <= max || (text.length <= 2 * max && [...text].length <= max);

/** Counts code points, as the database does; class-validator's MaxLength ignores variation selectors. */
export const MaxCharacters =
  (max: number): PropertyDecorator =>
  (prototype, name) =>
    registerDecorator({
      name: 'maxCharacters',
      target: prototype.constructor,
      propertyName: String(name),
      constraints: [max],
      validator: { validate: (value) => typeof value !== 'string' || fits(value, max) },
    });
