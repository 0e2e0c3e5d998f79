import { OperatorError } from '../platform/config/operator-error';

/** Runs work that writes to standard output, whose reader may stop early, like `head`. */
export async function toStandardOutput<T>(write: () => Promise<T>): Promise<T> {
  let broken: Error | undefined;
  const note = (error: Error) => (broken = error);
  process.stdout.on('error', note);
  try {
    return await write();
  } catch (error) {
    if (error !== broken) throw error;
  } finally {
    process.stdout.off('error', note);
  }
  throw new OperatorError('Standard output was closed before all was written.');
}

/** Explains an error of a file that the operator named. */
export function fileError(error: unknown, file: string, reading: boolean): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (reading && code === 'ENOENT') return new OperatorError(`File ${file} doesn't exist.`);
  const ofTheFile = syscall === 'open' || syscall === 'rename' || syscall === 'write' || syscall === 'read';
  return ofTheFile ? new OperatorError(`${file} cannot be used (${code}).`) : error;
}
