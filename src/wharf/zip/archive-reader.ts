import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { Readable } from 'node:stream';
import { RandomAccessReader } from 'yauzl';

const AHEAD_BYTES = 64 * 1024;

/**
 * Reads an archive synchronously, because it runs on a separate thread. Reads ahead, because the library
 * requests each header by itself.
 */
export class ArchiveReader extends RandomAccessReader {
  readonly size: number;
  private readonly file: number;
  private ahead = { start: 0, bytes: Buffer.alloc(0) };

  constructor(path: string) {
    super();
    this.file = openSync(path, 'r');
    this.size = fstatSync(this.file).size;
  }

  /** Returns fewer bytes at the end of the file. */
  bytesAt(position: number, length: number): Buffer {
    const { start, bytes } = this.ahead;
    if (position < start || position + length > start + bytes.length) {
      const buffer = Buffer.allocUnsafe(Math.max(length, AHEAD_BYTES));
      const read = readSync(this.file, buffer, 0, buffer.length, position);
      this.ahead = { start: position, bytes: buffer.subarray(0, read) };
    }
    const from = position - this.ahead.start;
    return this.ahead.bytes.subarray(from, from + length);
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, read?: number) => void,
  ): void {
    let read: number;
    try {
      read = this.bytesAt(position, length).copy(buffer, offset);
    } catch (error) {
      callback(error as Error);
      return;
    }
    callback(null, read);
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(this.chunks(start, end), { objectMode: false });
  }

  private *chunks(start: number, end: number): Generator<Buffer> {
    for (let at = start; at < end;) {
      const buffer = Buffer.allocUnsafe(Math.min(AHEAD_BYTES, end - at));
      const read = readSync(this.file, buffer, 0, buffer.length, at);
      // The library notices that bytes are missing.
      if (read === 0) return;
      at += read;
      yield buffer.subarray(0, read);
    }
  }

  override close(callback: (error: Error | null) => void): void {
    closeSync(this.file);
    super.close(callback);
  }
}
