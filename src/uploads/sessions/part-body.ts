import type { Readable } from 'node:stream';

/**
 * If the connection is cut, the received bytes are kept in blocks of this size, counted from the start of the
 * file.
 */
export const KEPT_BLOCK_BYTES = 256 * 1024;
/** A client that sends less in RATE_INTERVAL_MS is disconnected: 8 KB per second. */
const MIN_BYTES_PER_INTERVAL = 80 * 1024;
const RATE_INTERVAL_MS = 10_000;
const ZEROS = Buffer.alloc(64 * 1024);

/** The body of a request, in chunks of at most what the connection reads at once. */
export class PartBody {
  /** The connection was cut, or the body was shorter than announced. */
  isCut = false;
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer | undefined;
  private isWaiting = false;
  private received = 0;

  constructor(private readonly body: Readable) {
    // The connection is still needed for the response.
    this.chunks = (body.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>)[
      Symbol.asyncIterator
    ]();
  }

  async skip(bytes: number): Promise<void> {
    for await (const _ of this.take(bytes));
  }

  /** The next bytes; fewer if the connection is cut. */
  async *take(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0;) {
      const chunk = await this.next();
      if (!chunk) return;
      const piece = chunk.subarray(0, missing);
      if (piece.length < chunk.length) this.rest = chunk.subarray(piece.length);
      missing -= piece.length;
      yield piece;
    }
  }

  /**
   * The next bytes as the content of an object, whose length is already sent to the storage: after a cut, zeros follow.
   * Throws if nothing that arrived can be kept. `start`: their position in the file.
   */
  async *takeObject(start: number, bytes: number, stored: (bytes: number) => void): AsyncGenerator<Buffer> {
    let read = 0;
    for await (const chunk of this.take(bytes)) {
      read += chunk.length;
      yield chunk;
    }
    if (read === bytes) return stored(bytes);
    const kept = Math.floor((start + read) / KEPT_BLOCK_BYTES) * KEPT_BLOCK_BYTES - start;
    if (kept <= 0) throw new Error('nothing can be kept');
    stored(kept);
    for (let missing = bytes - read; missing > 0; missing -= ZEROS.length) yield ZEROS.subarray(0, missing);
  }

  /** Disconnects a client that sends too slowly, but only while the service waits for the client. */
  enforceRate(): () => void {
    let before = 0;
    const timer = setInterval(() => {
      if (this.isWaiting && this.received - before < MIN_BYTES_PER_INTERVAL) this.body.destroy();
      before = this.received;
    }, RATE_INTERVAL_MS).unref();
    return () => clearInterval(timer);
  }

  private async next(): Promise<Buffer | undefined> {
    if (this.rest) {
      const { rest } = this;
      this.rest = undefined;
      return rest;
    }
    if (this.isCut) return undefined;
    this.isWaiting = true;
    try {
      const { done, value } = await this.chunks.next();
      if (!done) {
        this.received += value.length;
        return value;
      }
    } catch {
      // A lost connection counts as an early end of the part.
    } finally {
      this.isWaiting = false;
    }
    this.isCut = true;
    return undefined;
  }
}
