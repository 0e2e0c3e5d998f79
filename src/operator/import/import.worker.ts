import { parentPort, workerData } from 'node:worker_threads';
import { OperatorError } from '../../platform/errors/operator-error';
import { ApiError } from '../../platform/errors/api-error';
import { oncePerKey, startFingerprint } from '../../idempotency/stored-responses';
import { connectTo, importRecords } from './import-records';
import type { FromThread, ThreadSettings, ToThread } from './import-thread';
import { ImportProblems } from './problems';

const port = parentPort!;
const { DATABASE_URL, pepper, mayImportCredentials, key } = workerData as ThreadSettings;
const fingerprint = key && startFingerprint(key);
const interruption = new AbortController();
let receive: (chunk: Uint8Array | undefined) => void = () => undefined;

port.on('message', (message: ToThread) => {
  if (message === 'abort') interruption.abort();
  else receive(message.chunk);
});
const say = (message: FromThread) => port.postMessage(message);

async function* chunks(): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
      receive = resolve;
      say('more');
    });
    if (!chunk) return;
    fingerprint?.update(chunk);
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
}

function failureOf(error: unknown) {
  if (error instanceof ImportProblems) return { problems: error.lines };
  if (error instanceof ApiError) return { status: error.statusCode, errors: error.errors };
  const { name, message, stack, code } = error as NodeJS.ErrnoException;
  return { name, message, stack, code, forOperator: error instanceof OperatorError };
}

importRecords(() => connectTo({ DATABASE_URL }), chunks(), {
  pepper: Buffer.from(pepper),
  mayImportCredentials,
  once: fingerprint && ((client, merge) => oncePerKey(client, key!, fingerprint.digest(), merge)),
  signal: interruption.signal,
}).then(
  (summary) => say({ summary }),
  (error: unknown) => say({ failure: failureOf(error) }),
);
