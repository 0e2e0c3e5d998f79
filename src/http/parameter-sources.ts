import { promisify } from 'node:util';
import bodyParser from 'body-parser';
import busboy from 'busboy';
import type { Request, Response } from 'express';
import { badRequest, failure } from './failure';

declare module 'node:http' {
  interface IncomingMessage {
    /** Parameters are read from the body too, whatever the method. */
    parametersInBody?: boolean;
  }
}

/** What a request carries, by name, before anything is known about the names. */
export class Given {
  readonly values = new Map<string, unknown>();
  /** Names that came twice, or as `name[...]`: refused where the name means something. */
  readonly repeated = new Set<string>();
  readonly bracketed = new Set<string>();
  readonly undecodable = new Set<string>();

  add(name: string, value: unknown): void {
    const bracket = name.indexOf('[');
    if (bracket > 0) this.bracketed.add(name.slice(0, bracket));
    else if (this.values.has(name) || this.undecodable.has(name)) this.repeated.add(name);
    else this.values.set(name, value);
  }

  /** `a=1&b=2`, of an address or a form. */
  addPairs(text: string): void {
    if (text === '') return;
    const pairs = text.split('&', MAX_FIELDS + 1);
    if (pairs.length > MAX_FIELDS) throw failure(413, 'too many parameters');
    for (const pair of pairs) {
      const equals = pair.indexOf('=');
      const name = decode(equals < 0 ? pair : pair.slice(0, equals));
      if (name === undefined || name === '') continue;
      const value = decode(equals < 0 ? '' : pair.slice(equals + 1));
      if (value !== undefined) this.add(name, value);
      else if (this.values.has(name) || this.undecodable.has(name)) this.repeated.add(name);
      else this.undecodable.add(name);
    }
  }
}

const MAX_FIELDS = 1000;
// 20,000 characters of four bytes, each percent-encoded, and room for the rest.
export const MAX_BODY = 512 * 1024;
const MAX_JSON_DEPTH = 32;

function decode(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

const readBody = promisify(
  bodyParser.raw({ type: () => true, limit: MAX_BODY }) as (
    req: Request,
    res: Response,
    next: (error?: unknown) => void,
  ) => void,
);

export function givenInQuery(req: Request): Given {
  const given = new Given();
  const question = req.url.indexOf('?');
  if (question >= 0) given.addPairs(req.url.slice(question + 1));
  return given;
}

export const hasBody = ({ headers }: Request) =>
  headers['content-length'] !== '0' && ('content-length' in headers || 'transfer-encoding' in headers);

const contentType = ({ headers }: Request) =>
  (headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());

export const hasReadableBody = (req: Request) => hasBody(req) && contentType(req)[0]! in READERS;

export async function givenInBody(req: Request, given: Given): Promise<void> {
  // Clients send an empty POST with no type, or with any.
  if (!hasBody(req)) return;
  const [mediaType = '', ...parameters] = contentType(req);
  const read = READERS[mediaType];
  // Whether a body in chunks is empty is known when it is read.
  if (!read && mediaType !== '') throw failure(415, 'unsupported media type');
  const charset = parameters
    .find((one) => one.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '');
  if (charset && charset !== 'utf-8' && charset !== 'utf8') throw failure(415, 'unsupported charset');
  await readBody(req, undefined as never);
  const body = req.body as Buffer | undefined;
  if (!Buffer.isBuffer(body) || body.length === 0) return;
  if (!read) throw failure(415, 'unsupported media type');
  await read(body, given, req);
}

type BodyReader = (body: Buffer, given: Given, req: Request) => void | Promise<void>;

const READERS: Record<string, BodyReader> = Object.assign(Object.create(null), {
  'application/x-www-form-urlencoded': (body: Buffer, given: Given) => given.addPairs(utf8(body)),
  'application/json': readJson,
  'multipart/form-data': readMultipart,
}) as Record<string, BodyReader>;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

function utf8(body: Buffer): string {
  try {
    return strict.decode(body);
  } catch {
    throw badRequest('the body must be valid UTF-8');
  }
}

function readJson(body: Buffer, given: Given): void {
  const text = utf8(body);
  const notAnObject = badRequest('the body must be a JSON object');
  if (nestsDeeperThan(MAX_JSON_DEPTH, text)) throw notAnObject;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw notAnObject;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw notAnObject;
  const names = Object.keys(parsed);
  if (names.length > MAX_FIELDS) throw failure(413, 'too many parameters');
  for (const name of names) given.add(name, (parsed as Record<string, unknown>)[name]);
  for (const name of repeatedNames(text)) given.repeated.add(name);
}

function nestsDeeperThan(max: number, json: string): boolean {
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x22) i = endOfString(json, i);
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > max) return true;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return false;
}

/** JSON.parse keeps the last of two members with one name and does not tell. */
function repeatedNames(json: string): Set<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x7d || c === 0x5d) depth--;
    else if (c === 0x22) {
      const end = endOfString(json, i);
      if (depth === 1 && /^\s*:/.test(json.slice(end + 1, end + 40))) {
        const name = JSON.parse(json.slice(i, end + 1)) as string;
        (seen.has(name) ? repeated : seen).add(name);
      }
      i = end;
    }
  }
  return repeated;
}

function endOfString(json: string, start: number): number {
  for (let i = start + 1; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x5c) i++;
    else if (c === 0x22) return i;
  }
  return json.length;
}

function readMultipart(body: Buffer, given: Given, req: Request): Promise<void> {
  const malformed = badRequest('the multipart body is malformed');
  return new Promise((resolve, reject) => {
    let parser: busboy.Busboy;
    try {
      parser = busboy({
        headers: req.headers,
        defParamCharset: 'utf8',
        limits: { fields: MAX_FIELDS, fieldSize: MAX_BODY, fieldNameSize: 200 },
      });
    } catch {
      reject(malformed);
      return;
    }
    parser.on('field', (name: string | undefined, value, info) => {
      // Not what its types say: of a part without a name, or with an empty one.
      if (!name) return;
      // The parser puts U+FFFD for bytes that are not UTF-8.
      if (info.valueTruncated || info.nameTruncated) reject(failure(413, 'request too large'));
      else if (value.includes('\ufffd') && !body.includes('\ufffd')) given.undecodable.add(name);
      else given.add(name, value);
    });
    parser.on('file', (_name, stream) => {
      stream.resume();
      reject(badRequest('files are not accepted'));
    });
    parser.on('fieldsLimit', () => reject(failure(413, 'too many parameters')));
    parser.on('error', () => reject(malformed));
    parser.on('close', resolve);
    parser.end(body);
  });
}
