import { lstatSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createdSecret } from '../platform/config/stored-secrets';
import { OperatorError } from '../platform/errors/operator-error';
import type { Settings } from '../platform/config/settings';
import { openEmbeddedPostgres } from './embedded/embedded-postgres';

export interface OpenDatabase {
  /** The settings, with the URL and secrets that were found or generated on this machine. */
  settings: Settings;
  isEmbedded: boolean;
  /** Whether another Gamewharf process uses the embedded server, too. */
  hasJoined: boolean;
  stop(): Promise<void>;
}

/** Rejects a folder without a store, so that a mistyped DATA_DIR doesn't create an empty one. */
export function requireStore({ DATABASE_URL, DATA_DIR }: Settings): void {
  if (DATABASE_URL) return;
  try {
    lstatSync(join(DATA_DIR, 'postgres'));
  } catch (error) {
    // Other problems with the folder are reported when it is opened.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new OperatorError(
        `There is no store in ${resolve(DATA_DIR)}: set DATA_DIR to the folder of the store, or start Gamewharf once to create one.`,
      );
  }
}

/** The configured server, or without one the embedded server of the data folder. */
export async function openDatabase(
  settings: Settings,
  mode: 'serve' | 'join-or-start',
  log: (line: string) => void,
  signal: AbortSignal,
  /** Settings of an embedded server. */
  postgres?: Record<string, string>,
): Promise<OpenDatabase> {
  const { DATABASE_URL, DATA_DIR } = settings;
  const server = DATABASE_URL
    ? undefined
    : await openEmbeddedPostgres({ dataDir: DATA_DIR, mode, log, signal, settings: postgres });
  const pepper = settings.API_KEY_PEPPER ?? createdSecret(DATA_DIR, 'api-key-pepper');
  const { FILES_S3_BUCKET, FILES_DIR = server && !FILES_S3_BUCKET ? join(DATA_DIR, 'files') : undefined } =
    settings;
  return {
    settings: { ...settings, FILES_DIR, API_KEY_PEPPER: pepper, DATABASE_URL: server?.url ?? DATABASE_URL },
    isEmbedded: server !== undefined,
    hasJoined: server?.hasJoined ?? false,
    stop: async () => server?.stop(),
  };
}
