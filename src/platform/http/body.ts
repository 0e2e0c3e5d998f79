import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Request } from 'express';
import readAll from 'raw-body';
import { apiError, badRequest } from './api-error';

const DECODERS: Partial<Record<string, () => ReturnType<typeof createGunzip>>> = {
  br: createBrotliDecompress,
  deflate: createInflate,
  gzip: createGunzip,
};

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== '0' && ('content-length' in headers || 'transfer-encoding' in headers);

/** Reads and decompresses a body. body-parser would ignore the body of a client that closed its half of the connection. */
export async function readBody(req: Request, limit: number): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.toLowerCase() ?? 'identity';
  // The connection was lost.
  if (!req.readable) throw apiError(400, 'malformed request');
  if (encoding === 'identity') return readAll(req, { length: req.headers['content-length'], limit });
  const decoder = DECODERS[encoding]?.();
  if (!decoder) throw apiError(415, 'unsupported media type');
  req.once('error', (error) => decoder.destroy(error));
  try {
    return await readAll(req.pipe(decoder) as Readable, { limit });
  } catch (error) {
    throw isTooLarge(error) ? error : apiError(400, 'malformed request');
  } finally {
    req.unpipe(decoder);
    decoder.destroy();
    // Node parses the next request only after the rest of this one is read.
    req.resume();
  }
}

const isTooLarge = (error: unknown) => (error as { type?: string }).type === 'entity.too.large';

/** A number of a JSON body with its digits, which a JavaScript number could round. */
export class JsonNumber {
  constructor(readonly source: string) {}
}

export const MAX_DEPTH = 32;
// Ten times the values of the longest request, which has two lists of 500 ids.
export const MAX_VALUES = 10_000;
// More than a list of ids may have: its reader refuses a longer one anyway.
const MAX_NUMBERS = 1000;
const NUMBER = /^[-\d]/;

const notAnObject = () => badRequest('the body must be a JSON object');

/** The members of a JSON object, duplicate names included. */
export function readJsonObject(text: string, most: number): [name: string, value: unknown][] {
  const { depth, values: count } = sizeOf(text);
  if (depth > MAX_DEPTH) throw notAnObject();
  if (count > MAX_VALUES) throw apiError(413, 'too many parameters');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw notAnObject();
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw notAnObject();
  const values = parsed as Record<string, unknown>;
  return membersOf(text, most).map(([name, source]) => [name, exactly(values[name], source)]);
}

function exactly(value: unknown, source: string): unknown {
  if (typeof value === 'number') return new JsonNumber(source);
  if (!Array.isArray(value) || value.length > MAX_NUMBERS) return value;
  if (!value.some((item) => typeof item === 'number') || /["[{]/.test(source.slice(1))) return value;
  return source
    .slice(1, -1)
    .split(',')
    .map((item) => (NUMBER.test(item.trim()) ? new JsonNumber(item.trim()) : null));
}

/** The depth and number of values of a JSON text, counted until either is over its limit. */
function sizeOf(json: string): { depth: number; values: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  for (let i = 0; i < json.length && deepest <= MAX_DEPTH && values <= MAX_VALUES; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x22) i = endOfString(json, i);
    else if (c === 0x2c) values++;
    else if (c === 0x7b || c === 0x5b) {
      values++;
      deepest = Math.max(deepest, ++depth);
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return { depth: deepest, values };
}

/** The names of a valid JSON object, each with the text of its value. */
function membersOf(json: string, most: number): [name: string, source: string][] {
  const members: [string, string][] = [];
  let depth = 0;
  let name: string | undefined;
  let start = 0;
  const end = (i: number) => {
    if (name !== undefined) members.push([name, json.slice(start, i).trim()]);
    if (members.length > most) throw apiError(413, 'too many parameters');
    name = undefined;
  };
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x22) {
      const last = endOfString(json, i);
      if (depth === 1 && name === undefined) name = JSON.parse(json.slice(i, last + 1)) as string;
      i = last;
    } else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x7d || c === 0x5d) {
      if (--depth === 0) end(i);
    } else if (depth === 1 && c === 0x3a) start = i + 1;
    else if (depth === 1 && c === 0x2c) end(i);
  }
  return members;
}

function endOfString(json: string, start: number): number {
  for (let i = start + 1; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x5c) i++;
    else if (c === 0x22) return i;
  }
  return json.length;
}
