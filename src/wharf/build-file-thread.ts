import { Worker } from 'node:worker_threads';
import { BuildFileError } from './pwr/build-file-error';

interface Thread {
  /** Path of the script, which sends one message. */
  script: string;
  data: unknown;
  maxHeapMegabytes: number;
}

/**
 * Runs work that takes minutes of CPU time on a thread with a bounded heap; returns its message. The thread
 * ends in any case.
 */
export async function runThread<Message>(
  { script, data, maxHeapMegabytes }: Thread,
  signal: AbortSignal,
): Promise<Message> {
  signal.throwIfAborted();
  const worker = new Worker(script, {
    workerData: data,
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 16 },
  });
  const abort = () => void worker.terminate();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await new Promise<Message>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
      worker.once('exit', () => reject(new Error('The thread ended before it sent a message.')));
    });
  } catch (error) {
    signal.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY')
      throw new BuildFileError(
        'The build needs too much memory. It has too many files, or their paths are too long.',
      );
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
