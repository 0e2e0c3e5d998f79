import { randomUUID } from 'node:crypto';
import { apiError, badRequest } from '../errors/api-error';
import { Repeated } from './input-values';

/** The text of a JSON number that a JavaScript number may round, such as 9007199254740993. */
export class RoundedNumber {
  constructor(readonly source: string) {}
}

export const MAX_DEPTH = 32;
// Ten times the values of the longest request, which has two lists of 500 IDs.
export const MAX_VALUES = 10_000;
// Twice the IDs of the longest request. Each takes far longer than any other value.
export const MAX_ROUNDED = 2000;
// Numbers with at most 15 significant digits are never rounded.
const NEVER_ROUNDED = 15;

const notAnObject = () => badRequest('the body must be a JSON object');

/**
 * Parses a JSON object like JSON.parse, except for repeated names, numbers that would be rounded, and the limits.
 * lossless-json keeps the digits of numbers, but accepts a repeated name with an equal value and has no limits.
 */
export function parseJsonObject(text: string, maxMembers: number): Record<string, unknown> {
  const { names, rounded } = scan(text);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw notAnObject();
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw notAnObject();
  if (names.length > maxMembers) throw apiError(413, 'too many parameters');
  const body = (rounded.length === 0 ? parsed : parseExactly(text, rounded)) as Record<string, unknown>;
  for (const name of repeatedIn(names)) body[name] = Repeated.of(body[name], body[name]);
  return body;
}

type Span = [start: number, end: number];

/** The limits are enforced before JSON.parse, which would need a lot of memory for deep or very long input. */
function scan(text: string): { names: string[]; rounded: Span[] } {
  const names: string[] = [];
  const rounded: Span[] = [];
  let depth = 0;
  let values = 1;
  let isName = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x22) {
      const end = endOfString(text, i);
      if (isName) names.push(text.slice(i, end + 1));
      isName = false;
      i = end;
    } else if (c === 0x2c) {
      values++;
      isName = depth === 1;
    } else if (c === 0x7b || c === 0x5b) {
      values++;
      depth++;
      isName = depth === 1;
    } else if (c === 0x7d || c === 0x5d) depth--;
    else if (c === 0x2d || (c >= 0x30 && c <= 0x39)) {
      const end = endOfNumber(text, i);
      if (!isExact(text.slice(i, end))) rounded.push([i, end]);
      i = end - 1;
    }
    if (depth > MAX_DEPTH) throw notAnObject();
    if (values > MAX_VALUES || rounded.length > MAX_ROUNDED) throw apiError(413, 'too many parameters');
  }
  return { names, rounded };
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x5c) i++;
    else if (c === 0x22) return i;
  }
  return text.length;
}

const NUMBER_CHARACTERS = /[\d.eE+-]+/y;

function endOfNumber(text: string, start: number): number {
  NUMBER_CHARACTERS.lastIndex = start;
  NUMBER_CHARACTERS.test(text);
  return NUMBER_CHARACTERS.lastIndex;
}

function isExact(source: string): boolean {
  const value = Number(source);
  if (source.length > NEVER_ROUNDED) return String(value) === source;
  // 1e400 and 1e-400 are too large or too small.
  return Number.isFinite(value) && (value !== 0 || !/[1-9]/.test(source));
}

// Marks numbers in the text, so it must be secret.
const MARK = randomUUID();

/** Replaces numbers that may be rounded by marked strings, and these by RoundedNumber. */
function parseExactly(text: string, rounded: Span[]): unknown {
  let marked = '';
  let last = 0;
  for (const [start, end] of rounded) {
    marked += `${text.slice(last, start)}"${MARK}${text.slice(start, end)}"`;
    last = end;
  }
  return JSON.parse(marked + text.slice(last), (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(MARK) ? new RoundedNumber(value.slice(MARK.length)) : value,
  );
}

function repeatedIn(sources: string[]): Set<string> {
  const names = new Set<string>();
  const repeated = new Set<string>();
  for (const source of sources) {
    const name = source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1);
    if (names.has(name)) repeated.add(name);
    names.add(name);
  }
  return repeated;
}
