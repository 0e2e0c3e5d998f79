import type { Settings } from '../platform/config/settings';
import type { Part } from '../uploads/sessions/read-parts';
import { runThread } from '../wharf/build-file-thread';
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
  /** The limit for all files of the build together. */
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

/**
 * Enough for 200,000 paths of 150 characters, with those of the parent. Other builds:
 * docs/guides/push-builds.md.
 */
const MAX_HEAP_MEGABYTES = 256;

/** Creates a build's archive. Rejects with a BuildFileError if its files are the problem. */
export async function processBuild(work: BuildWork, signal: AbortSignal): Promise<ProcessedBuild> {
  const script = require.resolve('./build.worker');
  const outcome = await runThread<BuildOutcome>(
    { script, data: work, maxHeapMegabytes: MAX_HEAP_MEGABYTES },
    signal,
  );
  if ('problem' in outcome) throw new BuildFileError(outcome.problem);
  return outcome.built;
}
