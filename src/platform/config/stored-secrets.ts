import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../errors/operator-error';

/** Reads or creates a secret in a file of the data folder, which only the file's owner can read. */
export function createdSecret(
  dataDir: string,
  name: string,
  make = () => randomBytes(32).toString('base64url'),
): string {
  const file = join(dataDir, name);
  try {
    mkdirSync(dataDir, { recursive: true });
    // wx: if two processes start concurrently, one creates the file and the other reads it.
    writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST')
      throw new OperatorError(
        `The data folder ${dataDir} cannot be written (${code}): set DATA_DIR to one that can.`,
      );
  }
  return readFileSync(file, 'utf8').trim();
}

/** The secret in a file of the data folder; undefined without that file. */
export function readSecret(dataDir: string, name: string): string | undefined {
  const file = join(dataDir, name);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}
