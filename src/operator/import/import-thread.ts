import { MessageChannel, Worker } from 'node:worker_threads';
import { Logger } from '@nestjs/common';
import { OperatorError } from '../../platform/errors/operator-error';
import { apiError } from '../../platform/errors/api-error';
import type { RetryKey } from '../../idempotency/stored-responses';
import type { ImportQueue } from './import-records';
import { ImportProblems } from './problems';
import type { ImportSummary } from './summary';

/** Imports that run at the same time on one thread, each on its own connection. */
export const MAX_CONNECTIONS = 4;

export interface ThreadSettings {
  DATABASE_URL: string | undefined;
  pepper: Buffer;
  previousPeppers?: string[];
}

export interface ImportRequest {
  queue: ImportQueue;
  mayImportCredentials?: boolean;
  /** The Idempotency-Key of the request. */
  key?: RetryKey;
}

export type ToThread = 'abort' | { chunk: Uint8Array | undefined };

type ThreadFailure =
  | { problems: string[] }
  | { status: number; errors: string[] }
  | { name: string; message: string; stack?: string; code?: string; forOperator: boolean };

export type FromThread = 'more' | { summary: ImportSummary } | { failure: ThreadFailure };

function errorFrom(failure: ThreadFailure): Error {
  if ('problems' in failure) return new ImportProblems(failure.problems);
  if ('status' in failure) return apiError(failure.status, ...failure.errors);
  const { forOperator, ...error } = failure;
  return forOperator ? new OperatorError(error.message) : Object.assign(new Error(), error);
}

/**
 * Imports on a separate thread, because one line may take a second. The main thread passes on chunks only
 * when they are requested. The thread starts with the first import.
 */
export class ImportThread {
  private worker: Worker | undefined;

  constructor(private readonly settings: ThreadSettings) {}

  async run(
    request: ImportRequest,
    source: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): Promise<ImportSummary> {
    signal.throwIfAborted();
    const { port1: port, port2 } = new MessageChannel();
    const tell = (message: ToThread) => port.postMessage(message);
    const abort = () => tell('abort');
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await new Promise<ImportSummary>((resolve, reject) => {
        const chunks = source[Symbol.asyncIterator]();
        port.on('message', (message: FromThread) => {
          if (message === 'more') chunks.next().then(({ value }) => tell({ chunk: value }), reject);
          else if ('summary' in message) resolve(message.summary);
          else reject(errorFrom(message.failure));
        });
        // The port closes when the thread ends.
        port.on('close', () => reject(new OperatorError('The import crashed.')));
        this.worker ??= this.start();
        this.worker.postMessage({ ...request, port: port2 }, [port2]);
      });
    } finally {
      signal.removeEventListener('abort', abort);
      port.close();
    }
  }

  /** Terminates the thread, which closes its connections, so that the server rolls back. */
  async end(): Promise<void> {
    const { worker } = this;
    this.worker = undefined;
    await worker?.terminate();
  }

  private start(): Worker {
    const worker = new Worker(require.resolve('./import.worker'), { workerData: this.settings });
    worker.on('error', ({ message }: Error) =>
      new Logger('ImportThread').error(`An import crashed: ${message}`),
    );
    worker.on('exit', () => {
      if (worker === this.worker) this.worker = undefined;
    });
    // Must come after the listeners, because adding them would keep the process alive.
    worker.unref();
    return worker;
  }
}
