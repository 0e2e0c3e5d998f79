import type { Readable } from 'node:stream';

/** The storage of files that records identify by `key`. The service itself sends no bytes of a bucket. */
export abstract class FileStorage {
  /** A signed URL that expires after FILES_URL_SECONDS. Computed without a request to the storage. */
  abstract downloadUrl(key: string, filename: string): string;

  /** Stores a file of `size` bytes, completely or not at all. */
  abstract put(key: string, size: number, content: Readable, signal: AbortSignal): Promise<void>;

  /** The bytes of a file from `start` to before `end`. Fails if the file has fewer. */
  abstract read(key: string, start: number, end: number): AsyncGenerator<Buffer>;

  /**
   * Deletes a file, including a partial one that a killed process left behind. Does nothing if it doesn't
   * exist.
   */
  abstract delete(key: string): Promise<void>;
}

/** Passes on chunks, and throws unless they have `bytes` bytes in total. */
export async function* requireLength(chunks: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of chunks) {
    read += chunk.length;
    yield chunk;
  }
  if (read !== bytes) throw new Error(`The storage sent ${read} of ${bytes} bytes.`);
}
