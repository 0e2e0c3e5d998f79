import type { ImportQueue } from './import-records';
import { NEWLINE } from './ndjson';

export const MAX_SMALL_BYTES = 1024 * 1024;
export const MAX_SMALL_RECORDS = 1000;

const SPACE = 32;

/** Reads a stream until its size is known. The returned stream repeats what was read. */
export async function measure(
  source: AsyncGenerator<Buffer>,
): Promise<{ queue: ImportQueue; stream: AsyncGenerator<Buffer> }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let records = 0;
  let isBlank = true;
  for (;;) {
    const { done, value: chunk } = await source.next();
    if (done) return { queue: 'small', stream: replayed(chunks, source) };
    chunks.push(chunk);
    bytes += chunk.length;
    for (const byte of chunk) {
      if (byte === NEWLINE) isBlank = true;
      else if (isBlank && byte > SPACE) {
        isBlank = false;
        records++;
      }
    }
    if (bytes > MAX_SMALL_BYTES || records > MAX_SMALL_RECORDS)
      return { queue: 'large', stream: replayed(chunks, source) };
  }
}

async function* replayed(chunks: Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  for (let chunk = chunks.shift(); chunk; chunk = chunks.shift()) yield chunk;
  yield* rest;
}
