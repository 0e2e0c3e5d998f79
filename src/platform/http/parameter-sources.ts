import busboy from 'busboy';
import type { Request } from 'express';
import { hasBody, readBody, readJsonObject } from './body';
import { badRequest, apiError } from './api-error';

/** The raw parameters of a request by name, known or not. */
export class Given {
  readonly values = new Map<string, unknown>();
  /** Names that were given twice, or as `name[...]`: refused if the parameter is known. */
  readonly repeated = new Set<string>();
  readonly bracketed = new Set<string>();
  readonly undecodable = new Set<string>();
  /** Names that are null in JSON. */
  nulls: Set<string> | undefined;

  add(name: string, value: unknown): void {
    if (value === null) {
      (this.nulls ??= new Set()).add(name);
      return;
    }
    const bracket = name.indexOf('[');
    if (bracket > 0) this.bracketed.add(name.slice(0, bracket));
    else if (this.values.has(name) || this.undecodable.has(name)) this.repeated.add(name);
    else this.values.set(name, value);
  }

  addAll(other: Given): void {
    for (const [name, value] of other.values) this.add(name, value);
    for (const name of other.nulls ?? []) this.add(name, null);
    for (const name of other.repeated) this.repeated.add(name);
    for (const name of other.bracketed) this.bracketed.add(name);
    for (const name of other.undecodable) this.undecodable.add(name);
  }

  /** Adds a value that may be given elsewhere too, if it is the same there. */
  addAgain(name: string, value: string): void {
    if (this.values.get(name) !== value) this.add(name, value);
  }

  /** Parses `a=1&b=2`. */
  addPairs(text: string): void {
    if (text === '') return;
    const pairs = text.split('&', MAX_FIELDS + 1);
    if (pairs.length > MAX_FIELDS) throw apiError(413, 'too many parameters');
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

export const MAX_FIELDS = 1000;
// Enough for 20,000 characters of four bytes, percent-encoded.
export const MAX_BODY = 512 * 1024;
// For account pages: enough for 20 redirect addresses of 2,000 characters, percent-encoded.
export const MAX_FORM = 128 * 1024;
const MULTIPART_SLICE = 64 * 1024;
const [PLUS, BLANK] = [0x2b, 0x20];

function decode(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

export function givenInQuery(req: Request): Given {
  const given = new Given();
  const question = req.url.indexOf('?');
  if (question >= 0) given.addPairs(req.url.slice(question + 1));
  return given;
}

const contentType = ({ headers }: Request) =>
  (headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());

export const hasReadableBody = (req: Request) => hasBody(req) && contentType(req)[0]! in READERS;

export const givenInForm = (req: Request, given: Given) => givenInBody(req, given, MAX_FORM);

export async function givenInBody(req: Request, given: Given, limit = MAX_BODY): Promise<void> {
  // Clients send an empty POST with any Content-Type or none.
  if (!hasBody(req)) return;
  const [mediaType = '', ...parameters] = contentType(req);
  const read = READERS[mediaType];
  // Without a type, a chunked body may be empty: known when it is read.
  if (!read && mediaType !== '') throw apiError(415, 'unsupported media type');
  const charset = parameters
    .find((one) => one.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '');
  if (charset && charset !== 'utf-8' && charset !== 'utf8') throw apiError(415, 'unsupported charset');
  // readBody would fail only after MAX_BODY bytes.
  if (Number(req.headers['content-length']) > MAX_BODY) throw apiError(413, 'request too large');
  const body = await req.exchange.receive(() => readBody(req, limit));
  if (body.length === 0) return;
  if (!read) throw apiError(415, 'unsupported media type');
  await read(body, given, req);
}

type BodyReader = (body: Buffer, given: Given, req: Request) => void | Promise<void>;

const READERS: Record<string, BodyReader> = Object.assign(Object.create(null), {
  'application/x-www-form-urlencoded': (body: Buffer, given: Given) => given.addPairs(utf8(unplussed(body))),
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

// On bytes, since half a million replacements in a string take 20 ms.
function unplussed(form: Buffer): Buffer {
  for (let i = 0; i < form.length; i++) if (form[i] === PLUS) form[i] = BLANK;
  return form;
}

function readJson(body: Buffer, given: Given): void {
  const names = new Set<string>();
  for (const [name, value] of readJsonObject(utf8(body), MAX_FIELDS)) {
    if (names.has(name)) given.repeated.add(name);
    else given.add(name, value);
    names.add(name);
  }
}

function readMultipart(body: Buffer, given: Given, req: Request): Promise<void> {
  const malformed = badRequest('the multipart body is malformed');
  const hasReplacements = body.includes('\ufffd');
  return new Promise((resolve, reject) => {
    let parser: busboy.Busboy;
    try {
      parser = busboy({
        headers: req.headers,
        defParamCharset: 'utf8',
        limits: {
          fields: MAX_FIELDS,
          files: 0,
          parts: MAX_FIELDS + 1,
          fieldSize: MAX_BODY,
          fieldNameSize: 200,
        },
      });
    } catch {
      reject(malformed);
      return;
    }
    parser.on('field', (name: string | undefined, value, info) => {
      // Undefined for a part without a name, unlike busboy's types.
      if (!name) return;
      // busboy replaces invalid UTF-8 by U+FFFD.
      if (info.valueTruncated || info.nameTruncated) reject(apiError(413, 'request too large'));
      else if (value.includes('\ufffd') && !hasReplacements) given.undecodable.add(name);
      else given.add(name, value);
    });
    parser.on('filesLimit', () => reject(badRequest('files are not accepted')));
    for (const limit of ['fieldsLimit', 'partsLimit'] as const)
      parser.on(limit, () => reject(apiError(413, 'too many parameters')));
    parser.on('error', () => reject(malformed));
    parser.on('close', resolve);
    // In slices, since parsing the headers of many parts blocks the event loop.
    const feed = (start: number) => {
      const end = start + MULTIPART_SLICE;
      parser.write(body.subarray(start, end));
      if (end < body.length && !parser.destroyed) setImmediate(feed, end);
      else parser.end();
    };
    feed(0);
  });
}
