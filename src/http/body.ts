import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Request } from 'express';
import readAll from 'raw-body';
import { failure } from './failure';

const DECODERS: Partial<Record<string, () => ReturnType<typeof createGunzip>>> = {
  br: createBrotliDecompress,
  deflate: createInflate,
  gzip: createGunzip,
};

/** Reads and decompresses a body. body-parser would ignore the body of a client that closed its half of the connection. */
export async function readBody(req: Request, limit: number): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.toLowerCase() ?? 'identity';
  // The connection was lost.
  if (!req.readable) throw failure(400, 'malformed request');
  if (encoding === 'identity') return readAll(req, { length: req.headers['content-length'], limit });
  const decoder = DECODERS[encoding]?.();
  if (!decoder) throw failure(415, 'unsupported media type');
  req.once('error', (error) => decoder.destroy(error));
  try {
    return await readAll(req.pipe(decoder) as Readable, { limit });
  } catch (error) {
    throw isTooLarge(error) ? error : failure(400, 'malformed request');
  } finally {
    req.unpipe(decoder);
    decoder.destroy();
    // Node parses the next request only after the rest of this one is read.
    req.resume();
  }
}

const isTooLarge = (error: unknown) => (error as { type?: string }).type === 'entity.too.large';
