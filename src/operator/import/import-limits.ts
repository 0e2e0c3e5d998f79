import { Injectable } from '@nestjs/common';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { type Client, Quota } from '../../platform/limits/client-limits';
import { ConcurrencyLimit } from '../../platform/limits/concurrency-limit';
import { MAX_BYTES } from './small-import';

/** Large imports of one process: one that runs, and the waiting ones. */
export const MAX_LARGE = 8;
/** Bytes of imports that may be small, from their first byte to their response. */
export const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** In seconds: a large import takes longer than a request. */
const RETRY_AFTER = 10;

/** Limits the resources of imports over HTTP. No client can use all of them. */
@Injectable()
export class ImportLimits {
  private readonly large = new ConcurrencyLimit({ accepted: MAX_LARGE, running: 1 });
  private readonly bytes = new Quota(MAX_HELD_BYTES);

  /** One at a time. A waiting import has no thread, and its body is not read, so its client has to wait. */
  oneAtATime<Result>(client: Client, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.large.run(client, signal, work, RETRY_AFTER);
  }

  /**
   * The stream buffers its bytes until the work ends. A large import buffers only what was read to determine that it is
   * large.
   */
  async whileBuffered<Result>(
    client: Client,
    source: AsyncIterable<Buffer>,
    work: (stream: AsyncGenerator<Buffer>) => Promise<Result>,
  ): Promise<Result> {
    const { bytes } = this;
    let held = 0;
    const stream = (async function* () {
      for await (const chunk of source) {
        if (held <= MAX_BYTES) {
          if (!bytes.take(client, chunk.length)) throw serviceUnavailable();
          held += chunk.length;
        }
        yield chunk;
      }
    })();
    try {
      return await work(stream);
    } finally {
      if (held > 0) bytes.release(client, held);
    }
  }
}
