import { Worker } from 'node:worker_threads';
import { Logger } from '@nestjs/common';
import { OperatorError } from '../../platform/errors/operator-error';
import { apiError } from '../../platform/errors/api-error';
import type { RetryKey } from '../../idempotency/stored-responses';
import { ImportProblems } from './problems';
import type { ImportSummary } from './summary';

export interface ThreadSettings {
  DATABASE_URL: string | undefined;
  pepper: Buffer;
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

function errorOf(failure: ThreadFailure): Error {
  if ('problems' in failure) return new ImportProblems(failure.problems);
  if ('status' in failure) return apiError(failure.status, ...failure.errors);
  const { forOperator, ...error } = failure;
  return forOperator ? new OperatorError(error.message) : Object.assign(new Error(), error);
}

/** Imports on a thread, because one line may take a second. The main thread only passes on chunks when requested. */
export async function importOnThread(
  settings: ThreadSettings,
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<ImportSummary> {
  signal.throwIfAborted();
  const worker = new Worker(require.resolve('./import.worker'), { workerData: settings });
  const tell = (message: ToThread) => worker.postMessage(message);
  const abort = () => tell('abort');
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await new Promise<ImportSummary>((resolve, reject) => {
      const chunks = source[Symbol.asyncIterator]();
      worker.on('message', (message: FromThread) => {
        if (message === 'more') chunks.next().then(({ value }) => tell({ chunk: value }), reject);
        else if ('summary' in message) resolve(message.summary);
        else reject(errorOf(message.failure));
      });
      worker.on('error', ({ message }: Error) =>
        new Logger('ImportThread').error(`An import crashed: ${message}`),
      );
      worker.on('exit', () => reject(new OperatorError('The import crashed.')));
    });
  } finally {
    signal.removeEventListener('abort', abort);
    // Closes its connection, so that the server rolls back.
    await worker.terminate();
  }
}
