import { Injectable } from '@nestjs/common';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { type Client, Quota } from '../../platform/limits/client-limits';
import { ConcurrencyLimit } from '../../platform/limits/concurrency-limit';
import type { ImportQueue } from './import-records';
import { MAX_SMALL_BYTES } from './import-size';
import { MAX_CONNECTIONS } from './import-thread';

/** Limits of imports over HTTP in one process. `accepted` includes waiting imports. */
export const QUEUES = {
  small: { running: MAX_CONNECTIONS, accepted: 256 },
  large: { running: 1, accepted: 8 },
};
/** The maximum wait of a small import. */
export const SMALL_IMPORT_WAIT_MS = 5000;
/** Limit of buffered imports that may be small, from their first byte to their response. */
export const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
/** Clients wait longer to retry a large import, because large imports run for longer. */
const IMPORT_RETRY_SECONDS = { small: 1, large: 10 };

/** Limits the resources of imports over HTTP. No client can use all of them. */
@Injectable()
export class ImportLimits {
  private readonly queues: Record<ImportQueue, ConcurrencyLimit> = {
    small: new ConcurrencyLimit(QUEUES.small),
    large: new ConcurrencyLimit(QUEUES.large),
  };
  private readonly bytes = new Quota(MAX_BUFFERED_BYTES);

  /** A waiting large import uses no thread, and its body isn't read, so its client has to wait. */
  run<Result>(
    queue: ImportQueue,
    client: Client,
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const waits =
      queue === 'small' ? AbortSignal.any([signal, AbortSignal.timeout(SMALL_IMPORT_WAIT_MS)]) : signal;
    return this.queues[queue].run(client, waits, work, IMPORT_RETRY_SECONDS[queue]);
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
    let buffered = 0;
    const stream = (async function* () {
      for await (const chunk of source) {
        if (buffered <= MAX_SMALL_BYTES) {
          if (!bytes.take(client, chunk.length)) throw serviceUnavailable();
          buffered += chunk.length;
        }
        yield chunk;
      }
    })();
    try {
      return await work(stream);
    } finally {
      if (buffered > 0) bytes.release(client, buffered);
    }
  }
}
