import type { Field } from './ask';
import type { Json } from './json';
import type { Operation, Parameter, Schema } from './operations';

/** What a parameter's rules say of a value; `either`: the specification does not say. */
export type Verdict = 'good' | 'bad' | 'either';

const INT8_MAX = 2n ** 63n - 1n;
const DIGITS = /^(0|[1-9]\d*)$/;
const BOOLEANS = /^(true|false|1|0|on|off|yes|no)$/i;
const LONE_SURROGATE = /\p{Surrogate}/u;
const LONGEST_HTML = 20_000;

const within = ({ minimum = 0, maximum }: Schema, value: bigint) =>
  value >= BigInt(minimum) && value <= (maximum === undefined ? INT8_MAX : BigInt(maximum));

function integer(schema: Schema, value: Json, json: boolean): Verdict {
  if (typeof value === 'number')
    return Number.isInteger(value) && !Object.is(value, -0) && within(schema, BigInt(value)) ? 'good' : 'bad';
  if (typeof value !== 'string' || !DIGITS.test(value)) return 'bad';
  if (!within(schema, BigInt(value))) return 'bad';
  return json ? 'either' : 'good';
}

function boolean(value: Json, json: boolean): Verdict {
  if (typeof value === 'boolean') return 'good';
  if (typeof value === 'number') return value === 0 || value === 1 ? 'either' : 'bad';
  if (typeof value !== 'string' || !BOOLEANS.test(value)) return 'bad';
  return json ? 'either' : 'good';
}

function list(schema: Schema, value: Json, json: boolean): Verdict {
  let ids: unknown = value;
  if (typeof value === 'string') {
    if (!/^[\s\d,[\]]*$/.test(value)) return 'bad';
    try {
      ids = JSON.parse(value);
    } catch {
      return 'bad';
    }
  }
  if (!Array.isArray(ids) || ids.length > (schema.maxItems ?? Infinity)) return 'bad';
  if (ids.some((id) => typeof id === 'string' && DIGITS.test(id))) return 'either';
  if (ids.some((id) => integer({}, id as Json, json) === 'bad')) return 'bad';
  // Beyond 2^53 two different ids may be one number here.
  if (new Set(ids).size < ids.length) return ids.some((id) => !Number.isSafeInteger(id)) ? 'either' : 'bad';
  return typeof value === 'string' && json ? 'either' : 'good';
}

const TIMESTAMP = /^[12]\d{3}-\d\d-(\d\d)T(\d\d):\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Date accepts 31 days of any month and 24:00; large offsets are left open. */
function timestamp(value: Json): Verdict {
  const [, day, hour] = (typeof value === 'string' && TIMESTAMP.exec(value)) || [];
  if (day === undefined || Number.isNaN(Date.parse(value as string))) return 'bad';
  return Number(day) <= 28 && hour !== '24' && !/[+-]1\d:\d\d$/.test(value as string) ? 'good' : 'either';
}

const isHtml = ({ description = '' }: Schema) => description.startsWith('HTML');

const INVISIBLE = /^[\p{Z}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800]*$/u;

function titleOf(value: string): string {
  const title = value.trim();
  return INVISIBLE.test(title) ? '' : title;
}

function text({ name, schema }: Parameter, value: Json): Verdict {
  if (typeof value !== 'string' || value.includes('\0') || LONE_SURROGATE.test(value)) return 'bad';
  if (isHtml(schema)) {
    if (value.length <= LONGEST_HTML / 10) return 'good';
    return /[<>&]/.test(value) ? 'either' : [...value.trim()].length > LONGEST_HTML ? 'bad' : 'good';
  }
  const read = name === 'title' ? titleOf(value) : value;
  if (schema.enum && !schema.enum.includes(read)) return 'bad';
  if ([...read].length > (schema.maxLength ?? Infinity)) return 'bad';
  if (read.length < (schema.minLength ?? 0)) return 'bad';
  if (schema.pattern && !new RegExp(schema.pattern, 'u').test(read)) return 'bad';
  return 'good';
}

function verdictOf(parameter: Parameter, value: Json, json: boolean): Verdict {
  const { schema } = parameter;
  if (schema.type === 'integer') return integer(schema, value, json);
  if (schema.type === 'boolean') return boolean(value, json);
  if (schema.type === 'array') return list(schema, value, json);
  if (schema.format === 'date-time') return timestamp(value);
  return text(parameter, value);
}

/** What a reader makes of a field that is text; undefined: it is not UTF-8. */
function textOf({ value, raw, place }: Field, encoding: string): string | undefined {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // Written as UTF-8, a lone surrogate is U+FFFD.
  if (place === 'body' && encoding === 'multipart') return Buffer.from(text).toString();
  if (!raw) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** A value as it would stand in a path. */
const asPath = (value: Json | undefined) => (typeof value === 'number' ? String(value) : value);

export interface Judged {
  verdict: Verdict;
  /** As the service should read it, where it was given once. */
  value?: Json;
}

/** What each parameter of the operation is given, and whether that is right; under `''` what is not about one of them. */
export function judge(
  operation: Operation,
  path: Record<string, string>,
  fields: Field[],
  encoding: string,
): Map<string, Judged> {
  const judged = new Map<string, Judged>();
  const given = new Set<string>();
  for (const parameter of operation.parameters) {
    const { name, schema } = parameter;
    if (parameter.in === 'header') continue;
    const isJson = ({ place }: Field) => place === 'body' && encoding === 'json';
    const all = fields.filter((field) => field.name === name);
    // In JSON null counts as left out, but where it clears.
    const nulls = all.filter((field) => isJson(field) && field.value === null);
    const own = all.filter((field) => !nulls.includes(field));
    const twice = own.length > 1 || nulls.length > 1 || (nulls.length > 0 && own.length > 0);
    const bracketed = fields.some((field) => field.name.startsWith(`${name}[`));
    if (own.length > 0 || bracketed) given.add(name);
    const [field] = own;
    const read = field && (isJson(field) ? field.value : textOf(field, encoding));
    if (parameter.in === 'path') {
      const same = field === undefined || asPath(read) === path[name];
      const verdict = verdictOf(parameter, path[name]!, false);
      if (!same || bracketed || own.length > 1) judged.set(name, { verdict: 'bad' });
      else judged.set(name, { verdict: twice ? 'either' : verdict, value: path[name] });
    } else if (bracketed) judged.set(name, { verdict: 'bad' });
    else if (twice) judged.set(name, { verdict: own.length > 1 || isHtml(schema) ? 'bad' : 'either' });
    else if (field === undefined) {
      if (parameter.required) judged.set(name, { verdict: 'bad' });
    } else if (read === undefined) judged.set(name, { verdict: 'bad' });
    else judged.set(name, { verdict: verdictOf(parameter, read, isJson(field)), value: read });
  }
  const { exactlyOneOf } = operation;
  if (exactlyOneOf.length > 0 && exactlyOneOf.filter((name) => given.has(name)).length !== 1)
    judged.set('exactly one of', { verdict: 'bad' });
  return judged;
}
