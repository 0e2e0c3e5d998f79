import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { newPool } from '../../platform/database/client';
import { OperatorError } from '../../platform/errors/operator-error';
import { ApiError } from '../../platform/errors/api-error';
import { oncePerKey, startFingerprint } from '../../idempotency/stored-responses';
import { connectionOptions, connectTo, importOn } from './import-records';
import {
  type FromThread,
  type ImportRequest,
  MAX_CONNECTIONS,
  type ThreadSettings,
  type ToThread,
} from './import-thread';
import { ImportProblems } from './problems';
import type { ImportSummary } from './summary';

const { DATABASE_URL, pepper, previousPeppers } = workerData as ThreadSettings;
const pool = newPool({
  ...connectionOptions(DATABASE_URL),
  max: MAX_CONNECTIONS,
  idleTimeoutMillis: 30_000,
});

parentPort!.on('message', ({ port, ...request }: ImportRequest & { port: MessagePort }) => {
  const say = (message: FromThread) => port.postMessage(message);
  importFrom(port, request).then(
    (summary) => say({ summary }),
    (error: unknown) => say({ failure: serializeFailure(error) }),
  );
});

async function importFrom(port: MessagePort, { queue, mayImportCredentials, key }: ImportRequest) {
  const interruption = new AbortController();
  const { signal } = interruption;
  let receive: (chunk: Uint8Array | undefined) => void = () => undefined;
  port.on('message', (message: ToThread) => {
    if (message === 'abort') interruption.abort();
    else receive(message.chunk);
  });
  // The port also closes when the client disconnects.
  port.on('close', () => interruption.abort());
  const fingerprint = key && startFingerprint(key);
  async function* chunks(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
        receive = resolve;
        port.postMessage('more' satisfies FromThread);
      });
      if (!chunk) return;
      fingerprint?.update(chunk);
      yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    }
  }
  let digest: Buffer | undefined;
  const client = await pool.connect();
  try {
    return await importOn(client, () => connectTo({ DATABASE_URL }), chunks(), {
      pepper: Buffer.from(pepper),
      previousPeppers,
      queue,
      mayImportCredentials,
      idempotency:
        fingerprint &&
        ((db, work) => oncePerKey<ImportSummary>(db, key!, (digest ??= fingerprint.digest()), work)),
      signal,
    });
  } finally {
    // A statement that was cancelled too late could be the next import's.
    client.release(signal.aborted);
  }
}

function serializeFailure(error: unknown) {
  if (error instanceof ImportProblems) return { problems: error.lines };
  if (error instanceof ApiError) return { status: error.statusCode, errors: error.errors };
  const { name, message, stack, code } = error as NodeJS.ErrnoException;
  return { name, message, stack, code, forOperator: error instanceof OperatorError };
}
