import { OperatorError } from '../platform/errors/operator-error';

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
  throw new OperatorError('Standard output was closed before all output was written.');
}

/** Explains an error of a file that the operator named. */
export const fileError =
  (file: string) =>
  (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new OperatorError(`${file} cannot be used (${code}).`);
  };

/** Explains an error of reading a file that the operator named. */
export const readError =
  (file: string) =>
  (error: unknown): never => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new OperatorError(`File ${file} doesn't exist.`);
    return fileError(file)(error);
  };
