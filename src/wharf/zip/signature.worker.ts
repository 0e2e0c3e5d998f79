import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { BuildFileError } from '../pwr/build-file-error';
import { writeSignature } from '../pwr/signature';
import type { SignatureOutcome, SignatureRequest } from './zip-signature';
import { openZip } from './zip-archive';

async function sign({ archive, signature, maxBytes }: SignatureRequest): Promise<void> {
  const zip = await openZip(archive, maxBytes);
  try {
    const written = writeSignature(zip.container, (file) => zip.read(file));
    await pipeline(Readable.from(written), createWriteStream(signature, { flags: 'wx' }));
  } finally {
    zip.close();
  }
}

void sign(workerData as SignatureRequest)
  .then((): SignatureOutcome => ({ problem: undefined }))
  .catch((error: unknown): SignatureOutcome => {
    if (error instanceof BuildFileError) return { problem: error.message };
    throw error;
  })
  .then((outcome) => parentPort!.postMessage(outcome));
