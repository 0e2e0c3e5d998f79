import { Worker } from 'node:worker_threads';
import type { Settings } from '../platform/config/settings';
import type { Part } from '../uploads/sessions/read-parts';
import { BuildFileError } from '../wharf/pwr/build-file-error';

type StorageSettings = Pick<Settings, Extract<keyof Settings, `FILES_${string}`>>;

export interface StoredFile {
  file_key: string;
  size: number;
}

/** A pushed build to process. */
export interface BuildWork {
  storage: StorageSettings;
  signature: Part[];
  patch: Part[];
  parent: { archive: StoredFile; signature: StoredFile } | undefined;
  /** The keys of the files to store. */
  keys: Record<'archive' | 'patch' | 'signature', string>;
  /** A new folder for temporary files. */
  folder: string;
  /** Of all files of the build. */
  max_bytes: number;
  /** Milliseconds since 1970. */
  created_at: number;
}

export interface ProcessedBuild {
  archive: { size: number; md5_hash: string };
  patch: { size: number };
  signature: { size: number };
}

/** `problem`: of the patch or the signature, for the user of the upload tool. */
export type BuildOutcome = { built: ProcessedBuild } | { problem: string };

const MEGABYTES = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 16 };

/**
 * Creates a build's archive on a thread, because a build takes minutes of CPU time. Rejects with a BuildFileError if its
 * files are the problem.
 */
export async function processBuild(work: BuildWork, signal: AbortSignal): Promise<ProcessedBuild> {
  signal.throwIfAborted();
  const worker = new Worker(require.resolve('./build.worker'), {
    workerData: work,
    resourceLimits: MEGABYTES,
  });
  const abort = () => void worker.terminate();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const outcome = await new Promise<BuildOutcome>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
      worker.once('exit', () => reject(new Error('The thread that processes a build ended early.')));
    });
    if ('problem' in outcome) throw new BuildFileError(outcome.problem);
    return outcome.built;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
