import { Worker } from 'node:worker_threads';
import { BuildFileError } from '../pwr/build-file-error';

export interface SignatureRequest {
  /** Paths of files. */
  archive: string;
  signature: string;
  /** Of all files in the archive. */
  maxBytes: number;
}

/** The problem of an archive that launchers couldn't read either. */
export interface SignatureOutcome {
  problem: string | undefined;
}

const MEGABYTES = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 };

/**
 * Writes the signature of a zip archive into a new file. On a thread, because hashing gigabytes would block the event
 * loop. Rejects with a BuildFileError if the archive can't have one.
 */
export async function signZip(request: SignatureRequest, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const worker = new Worker(require.resolve('./signature.worker'), {
    workerData: request,
    resourceLimits: MEGABYTES,
  });
  const abort = () => void worker.terminate();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const { problem } = await new Promise<SignatureOutcome>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
      worker.once('exit', () => reject(new Error('The thread that signs an archive ended early.')));
    });
    if (problem !== undefined) throw new BuildFileError(problem);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
