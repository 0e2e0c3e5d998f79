import type { Readable } from 'node:stream';

/** The storage of files that records identify by `key`. The service itself sends no bytes of a bucket. */
export abstract class FileStorage {
  /** A signed URL that expires after FILES_URL_SECONDS. Computed without a request to the storage. */
  abstract urlOf(key: string, filename: string): string;

  /** Stores a file of `size` bytes, completely or not at all. */
  abstract put(key: string, size: number, content: Readable, signal: AbortSignal): Promise<void>;

  /** Deletes a file. Does nothing if it doesn't exist. */
  abstract delete(key: string): Promise<void>;
}
