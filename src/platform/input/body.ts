import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import { setImmediate as immediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import busboy from 'busboy';
import type { Request } from 'express';
import readAll from 'raw-body';
import { apiError, badRequest } from '../errors/api-error';
import { addValue, NOT_UTF8, Repeated } from './input-values';
import { parseJsonObject } from './json';

type Values = Record<string, unknown>;

export const MAX_FIELDS = 1000;
// Enough for 20,000 characters of four bytes, percent-encoded.
export const MAX_BODY_BYTES = 512 * 1024;
// Forms of account pages may have 20 redirect URLs of 2,000 characters, percent-encoded.
export const MAX_FORM_BYTES = 128 * 1024;
const MULTIPART_SLICE_BYTES = 16 * 1024;
const [PLUS, SPACE] = [0x2b, 0x20];

// A Map, because an object also has a `constructor`.
const DECODERS = new Map<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>([
  ['br', promisify(brotliDecompress)],
  ['deflate', promisify(inflate)],
  ['gzip', promisify(gunzip)],
]);

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== '0' && ('content-length' in headers || 'transfer-encoding' in headers);

/** Parses `a=1&b=2` like the default parser of Express. Also the query parser of the app. */
export function parseFields(text: string | null): Values {
  const fields: Values = Object.create(null) as Values;
  if (!text) return fields;
  // Counts empty fields, too. A limit of `parse` would drop the fields after it without an error.
  if (text.length > MAX_FIELDS && text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS)
    throw apiError(413, 'too many parameters');
  const parsed = parse(text, '&', '=', { maxKeys: 0, decodeURIComponent: decode });
  for (const name in parsed) {
    const value = parsed[name];
    fields[name] = Array.isArray(value) ? Repeated.of(...(value as unknown[])) : value;
  }
  return fields;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return NOT_UTF8;
  }
}

/** Parses the body into `req.body` once; later calls get the result of the first. */
export const parseBody = (req: Request, limit = MAX_BODY_BYTES): Promise<void> =>
  (req.bodyParsed ??= readFields(req, limit).then((body) => void (req.body = body)));

const contentType = ({ headers }: Request) =>
  (headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());

export const hasReadableBody = (req: Request) => hasBody(req) && contentType(req)[0]! in PARSERS;

/** Rejects a body whose Content-Type names another charset. */
export function requireUtf8(req: Request): void {
  const charset = contentType(req)
    .find((one) => one.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '');
  if (charset && charset !== 'utf-8' && charset !== 'utf8') throw apiError(415, 'unsupported charset');
}

async function readFields(req: Request, limit: number): Promise<Values | undefined> {
  // Clients send an empty POST with any Content-Type or none.
  if (!hasBody(req)) return undefined;
  const [mediaType = ''] = contentType(req);
  const parser = PARSERS[mediaType];
  // Without a type, a chunked body may be empty, which is only known after it is read.
  if (!parser && mediaType !== '') throw apiError(415, 'unsupported media type');
  requireUtf8(req);
  // raw-body would reject the body only after MAX_BODY_BYTES of it have arrived.
  if (Number(req.headers['content-length']) > MAX_BODY_BYTES) throw apiError(413, 'request too large');
  const body = await req.inFlight.receive(() => readBytes(req, limit));
  if (body.length === 0) return undefined;
  if (!parser) throw apiError(415, 'unsupported media type');
  return parser(body, req);
}

/** Doesn't use body-parser, which ignores the body of a client that closed its half of the connection. */
async function readBytes(req: Request, limit: number): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.toLowerCase() ?? 'identity';
  const decode = DECODERS.get(encoding);
  if (!decode && encoding !== 'identity') throw apiError(415, 'unsupported media type');
  // The connection was lost.
  if (!req.readable) throw apiError(400, 'malformed request');
  const body = await readAll(req, { length: req.headers['content-length'], limit });
  try {
    return decode ? await decode(body, { maxOutputLength: limit }) : body;
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLarge ? apiError(413, 'request too large') : apiError(400, 'malformed request');
  }
}

type Parser = (body: Buffer, req: Request) => Values | Promise<Values>;

const PARSERS: Record<string, Parser> = Object.assign(Object.create(null), {
  'application/x-www-form-urlencoded': (body: Buffer) => parseFields(utf8(withoutPluses(body))),
  'application/json': (body: Buffer) => parseJsonObject(utf8(body), MAX_FIELDS),
  'multipart/form-data': parseMultipart,
}) as Record<string, Parser>;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

function utf8(body: Buffer): string {
  try {
    return strict.decode(body);
  } catch {
    throw badRequest('the body must be valid UTF-8');
  }
}

// Works on bytes, because many replacements in a string would block the event loop.
function withoutPluses(form: Buffer): Buffer {
  for (let i = 0; i < form.length; i++) if (form[i] === PLUS) form[i] = SPACE;
  return form;
}

// busboy instead of multer, which would block the event loop for the headers of many parts and nests bracketed names.
async function parseMultipart(body: Buffer, req: Request): Promise<Values> {
  const fields: Values = Object.create(null) as Values;
  const hasReplacements = body.includes('\ufffd');
  let problem: Error | undefined;
  const reject = (error: Error) => (problem ??= error);
  const limits = {
    fields: MAX_FIELDS,
    files: 0,
    parts: MAX_FIELDS + 1,
    fieldSize: MAX_BODY_BYTES,
    fieldNameSize: 200,
  };
  try {
    const parser = busboy({ headers: req.headers, defParamCharset: 'utf8', limits });
    parser.on('field', (name: string | undefined, value, info) => {
      // Contrary to busboy's types, the name of a part can be undefined.
      if (!name) return;
      if (info.valueTruncated || info.nameTruncated) reject(apiError(413, 'request too large'));
      // busboy replaces invalid UTF-8 by U+FFFD.
      else addValue(fields, name, value.includes('\ufffd') && !hasReplacements ? NOT_UTF8 : value);
    });
    parser.on('filesLimit', () => reject(badRequest('files are not accepted')));
    for (const limit of ['fieldsLimit', 'partsLimit'] as const)
      parser.on(limit, () => reject(apiError(413, 'too many parameters')));
    const closed = once(parser, 'close');
    closed.catch(() => undefined);
    // Parses in slices, because the headers of many parts would block the event loop.
    for (
      let start = 0;
      start < body.length && !problem && !parser.destroyed;
      start += MULTIPART_SLICE_BYTES
    ) {
      parser.write(body.subarray(start, start + MULTIPART_SLICE_BYTES));
      await immediate();
    }
    parser.end();
    if (!problem) await closed;
  } catch {
    reject(badRequest('the multipart body is malformed'));
  }
  if (problem) throw problem;
  return fields;
}
