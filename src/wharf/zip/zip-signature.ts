import { runThread } from '../build-file-thread';
import { BuildFileError } from '../pwr/build-file-error';

export interface SignatureRequest {
  /** Paths of files. */
  archive: string;
  signature: string;
  /** The limit for all files in the archive together. */
  maxBytes: number;
}

/** The problem of an archive that launchers couldn't read either. */
export interface SignatureOutcome {
  problem: string | undefined;
}

const MAX_HEAP_MEGABYTES = 256;

/**
 * Writes the signature of a zip archive into a new file. Rejects with a BuildFileError if the archive can't
 * have one.
 */
export async function signZip(request: SignatureRequest, signal: AbortSignal): Promise<void> {
  const script = require.resolve('./signature.worker');
  const { problem } = await runThread<SignatureOutcome>(
    { script, data: request, maxHeapMegabytes: MAX_HEAP_MEGABYTES },
    signal,
  );
  if (problem !== undefined) throw new BuildFileError(problem);
}
