import { SCOPES } from '../../auth/access/scopes';
import { isWorthSanitizing, MAX_HTML_CHARACTERS, sanitizeHtml } from '../../collections/html';
import { lowerAscii } from '../../platform/formats/lower-ascii';
import { timestampProblem } from '../../platform/formats/timestamps';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';

/** Reports the problem of a value; `at` is its index in a list. Returns '' so that an encoder can return it. */
export type Reject = (why: string, at?: string) => string;

/** The value of a column, or the values of several, in the text format of COPY. */
export type Cells = string | readonly string[];

/** A value type: the type of its staging column, and its encoder from JSON to COPY's text. */
export interface ValueType {
  sql: string;
  /** Description of valid values, for docs/reference/import-records.md. */
  allows: string;
  /** After `reject`, the result isn't used. */
  encode(value: unknown, reject: Reject): Cells;
  /** The record type that these IDs refer to. */
  references?: string;
  /** A list of IDs. */
  many?: boolean;
}

interface OneColumn extends ValueType {
  encode(value: unknown, reject: Reject): string;
}

export const NULL = '\\N';
const MAX_ID = Number.MAX_SAFE_INTEGER;

const SPECIAL_CHARACTERS = /[\\\n\r\t\0\ud800-\udfff]/;
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const escaped = (text: string) => text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character]!);

const codePoints = (text: string) => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};

interface TextRules {
  min?: number;
  max: number;
  pattern?: Pick<RegExp, 'test'>;
  /** Describes the pattern, after `must`. */
  form?: string;
  /** Normalizes the text for storage. */
  stored?: (text: string) => string;
}

/** A text that can be stored, or undefined if a problem was reported. */
export function fit(
  value: unknown,
  { min = 1, max, pattern, form, stored }: TextRules,
  reject: Reject,
  at?: string,
) {
  if (typeof value !== 'string') return void reject('must be a text', at);
  const text = stored ? stored(value) : value;
  if (SPECIAL_CHARACTERS.test(text)) {
    if (text.includes('\0')) return void reject('must not contain NUL', at);
    if (/\p{Surrogate}/u.test(text)) return void reject('must be valid Unicode', at);
  }
  if (text.length < min)
    return void reject(min === 1 ? 'must not be empty' : `must be at least ${min} characters`, at);
  if (text.length > max && (text.length > 2 * max || codePoints(text) > max))
    return void reject(`must be at most ${max} characters`, at);
  if (pattern && !pattern.test(text)) return void reject(`must ${form}`, at);
  return text;
}

const copied = (text: string) => (SPECIAL_CHARACTERS.test(text) ? escaped(text) : text);

export const text = (rules: TextRules): OneColumn => ({
  sql: 'text',
  allows: `text of at most ${rules.max.toLocaleString('en-US')} characters${rules.form ? `, which must ${rules.form}` : ''}`,
  encode(value, reject) {
    const found = fit(value, rules, reject);
    return found === undefined ? '' : copied(found);
  },
});

export const title = (max: number, rules?: Pick<TextRules, 'pattern' | 'form'>) =>
  text({ max, stored: (value) => value.trim(), ...rules });

export const email: TextRules = {
  max: 254,
  pattern: /^[^\s@]+@[^\s@]+$/,
  form: 'be an email address',
};

export const url = text({ max: 2000, pattern: /^https?:\/\/[^\s/]\S*$/i, form: 'be an http or https URL' });

const HTTPS_URL: TextRules = {
  max: 2000,
  pattern: { test: (text) => /^https:\/\/[^\s/]\S*$/i.test(text) && URL.canParse(text) },
  form: 'be an https URL',
};
export const httpsUrl = text(HTTPS_URL);

const FILE_KEY: TextRules = {
  max: 900,
  pattern: /^(?!\/)(?!.*\.\.)\P{Cc}+$/u,
  form: 'be the path of a file, without .., a leading / or control characters',
};
const MD5: TextRules = {
  max: 32,
  pattern: /^[0-9a-f]{32}$/,
  form: 'be 32 hexadecimal digits',
  stored: (digits) => digits.toLowerCase(),
};

/** A stored file, staged as the columns file_key, file_url, size and md5_hash. */
export const file: ValueType = {
  sql: 'text',
  allows: '`{"key" or "url", "size", "md5_hash"?}`',
  encode(value, reject) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return reject('must be an object');
    const { key, url, size, md5_hash, ...others } = value as Record<string, unknown>;
    for (const name of Object.keys(others)) reject('is unknown', `.${shown(name)}`);
    if (((key ?? null) === null) === ((url ?? null) === null)) reject('must have exactly one of key, url');
    const encoded = (rules: TextRules, field: string, part: unknown) =>
      part == null ? NULL : copied(fit(part, rules, reject, `.${field}`) ?? '');
    return [
      encoded(FILE_KEY, 'key', key),
      encoded(HTTPS_URL, 'url', url),
      size == null ? reject('is required', '.size') : amount.encode(size, (why) => reject(why, '.size')),
      encoded(MD5, 'md5_hash', md5_hash),
    ];
  },
};
export const FILE_COLUMNS = [
  { name: 'file_key', sql: 'text' },
  { name: 'file_url', sql: 'text' },
  { name: 'size', sql: 'bigint' },
  { name: 'md5_hash', sql: 'text' },
];
export const NO_FILE = FILE_COLUMNS.map(() => NULL);

/** HTML, stored sanitized. */
export const html: ValueType = {
  sql: 'text',
  allows: `HTML, at most ${MAX_HTML_CHARACTERS.toLocaleString('en-US')} characters after sanitization`,
  encode(value, reject) {
    const raw = fit(value, { min: 0, max: Infinity }, reject);
    if (raw === undefined) return '';
    const clean = isWorthSanitizing(raw) ? sanitizeHtml(raw) : raw;
    if (clean === null) return NULL;
    const found = fit(clean, { max: MAX_HTML_CHARACTERS }, reject);
    return found === undefined ? '' : copied(found);
  },
};

export const boolean: ValueType = {
  sql: 'boolean',
  allows: 'true or false',
  encode: (value, reject) => (value === true ? 't' : value === false ? 'f' : reject('must be true or false')),
};

export const integer = (min: number, max: number, sql = 'bigint'): OneColumn => ({
  sql,
  allows: `whole number from ${min} to ${max}`,
  encode(value, reject) {
    if (typeof value !== 'number' || !Number.isInteger(value)) return reject('must be an integer');
    if (value < min || value > max) return reject(`must be between ${min} and ${max}`);
    return String(value);
  },
});

export const amount = integer(0, Number.MAX_SAFE_INTEGER);

const MAJOR_UNITS = /^\d{1,12}\.\d{1,2}$/;

/** An amount of money. */
export const minorUnits: ValueType = {
  ...amount,
  encode(value, reject) {
    if (Number.isInteger(value)) return amount.encode(value, reject);
    const isMajor = MAJOR_UNITS.test(String(value));
    const example = isMajor ? `: ${Math.round(Number(value) * 100)}` : ', such as 499 for 4.99';
    return reject(`must be an integer in minor units${example}`);
  },
};

export const number = (min: number, max: number): ValueType => ({
  sql: 'double precision',
  allows: `number from ${min} to ${max}`,
  encode(value, reject) {
    if (typeof value !== 'number') return reject('must be a number');
    if (!(value >= min && value <= max)) return reject(`must be between ${min} and ${max}`);
    return String(value);
  },
});

export const oneOf = (values: readonly string[]): ValueType => {
  const known = new Set<unknown>(values);
  return {
    sql: 'text',
    allows: values.map((value) => `\`${value}\``).join(', '),
    encode: (value, reject) =>
      known.has(value) ? (value as string) : reject(`must be one of ${values.join(', ')}`),
  };
};

export const isId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_ID;

const idText = (value: unknown, reject: Reject, at?: string) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return reject('must be an integer', at);
  return isId(value) ? String(value) : reject(`must be between 1 and ${MAX_ID}`, at);
};

export const id: ValueType = {
  sql: 'bigint',
  allows: `ID from 1 to ${MAX_ID}`,
  encode: (value, reject) => idText(value, reject),
};

/** IDs from here on don't affect the sequence, because advancing it this far would leave no IDs. */
export const UNCOUNTED = 2 ** 52;
/**
 * This many IDs before UNCOUNTED are reserved; otherwise, the sequence would reach the IDs that don't affect
 * it.
 */
const GAP = 2 ** 40;

/** The ID of a record itself. */
export const ownId: ValueType = {
  ...id,
  encode: (value, reject) =>
    isId(value) && value < UNCOUNTED && value >= UNCOUNTED - GAP
      ? reject(`must not be between ${UNCOUNTED - GAP} and ${UNCOUNTED - 1}`)
      : idText(value, reject),
};

export const idFor = (type: string): ValueType => ({ ...id, references: type, allows: `ID of a ${type}` });

/** A set of IDs, staged in ascending order. */
export const idsFor = (type: string): ValueType => ({
  sql: 'bigint[]',
  allows: `list of IDs of ${type}s`,
  references: type,
  many: true,
  encode(value, reject) {
    if (!Array.isArray(value)) return reject('must be a list');
    if (value.length === 1) return `{${idText(value[0], reject, '[0]')}}`;
    const seen = new Set<unknown>();
    value.forEach((one, index) => {
      if (!idText(one, reject, `[${index}]`)) return;
      if (seen.has(one)) reject('is in the list twice', `[${index}]`);
      seen.add(one);
    });
    return `{${[...(seen as Set<number>)].sort((a, b) => a - b).join(',')}}`;
  },
});

/** Reads between 1 and `max` IDs, staged in their order. */
export const orderedIdsFor = (type: string, max: number): ValueType => ({
  ...idsFor(type),
  allows: `list of 1 to ${max.toLocaleString('en-US')} IDs of ${type}s`,
  encode(value, reject) {
    idsFor(type).encode(value, reject);
    if (!Array.isArray(value)) return '';
    if (value.length === 0) return reject('must not be empty');
    return value.length > max ? reject(`must have at most ${max} ids`) : `{${value.join(',')}}`;
  },
});

/** One or several IDs, staged as a list. */
export const idOrIdsFor = (type: string, max: number): ValueType => {
  const several = idsFor(type);
  return {
    ...several,
    allows: `ID of a ${type}, or a list of at most ${max.toLocaleString('en-US')}`,
    encode(value, reject) {
      if (!Array.isArray(value)) return `{${idText(value, reject)}}`;
      if (value.length > max) return reject(`must have at most ${max} ids`);
      return value.length ? several.encode(value, reject) : reject('must not be empty');
    },
  };
};

const arrayLiteral = (texts: string[]) =>
  copied(`{${texts.map((one) => `"${one.replace(/["\\]/g, '\\$&')}"`).join(',')}}`);

export const texts = (rules: TextRules & { known?: readonly string[]; required?: boolean }): ValueType => ({
  sql: 'text[]',
  allows: `list of ${rules.known ? rules.known.map((one) => `\`${one}\``).join(', ') : 'texts'}`,
  encode(value, reject) {
    if (!Array.isArray(value)) return reject('must be a list');
    if (rules.required && !value.length) return reject('must not be empty');
    const seen = new Set<string>();
    value.forEach((one, index) => {
      const at = `[${index}]`;
      const found = fit(one, rules, reject, at);
      if (found === undefined) return;
      if (rules.known && !rules.known.includes(found)) reject(`must be one of ${rules.known.join(', ')}`, at);
      else if (seen.has(found)) reject('is in the list twice', at);
      seen.add(found);
    });
    return arrayLiteral([...seen]);
  },
});

export const scopes = texts({ max: 100, known: Object.keys(SCOPES) });

/** A list of `{email, verified}`, staged as two arrays. */
export const emails: ValueType = {
  sql: 'text[]',
  allows: 'list of `{"email", "verified"}`',
  encode(value, reject) {
    if (!Array.isArray(value)) return reject('must be a list');
    const addresses: string[] = [];
    const verified: string[] = [];
    value.forEach((one: unknown, index) => {
      const at = `[${index}]`;
      if (typeof one !== 'object' || one === null || Array.isArray(one))
        return reject('must be an object', at);
      const entry = one as Record<string, unknown>;
      for (const name of Object.keys(entry)) {
        if (name !== 'email' && name !== 'verified') reject('is unknown', `${at}.${shown(name)}`);
      }
      if (typeof entry.verified !== 'boolean') reject('must be true or false', `${at}.verified`);
      const address = fit(entry.email, email, reject, `${at}.email`);
      if (address !== undefined && lowerAscii(address) === ERASED_ADDRESS)
        reject('is reserved for erased buyers', `${at}.email`);
      if (address !== undefined) addresses.push(address);
      verified.push(entry.verified ? 't' : 'f');
    });
    return [arrayLiteral(addresses), `{${verified.join(',')}}`];
  },
};

export const timestamp: ValueType = {
  sql: 'timestamptz',
  allows: 'timestamp',
  encode: (value, reject) => {
    const problem = timestampProblem(value);
    return problem === undefined ? (value as string) : reject(problem);
  },
};

/** A name from the file, shortened and escaped for messages. */
export const shown = (name: string) => name.replace(/[^\w.:-]/g, '?').slice(0, 40);
