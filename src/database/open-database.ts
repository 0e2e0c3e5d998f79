import { keptSecret } from '../config/kept-secrets';
import type { Settings } from '../config/settings';
import { openEmbeddedPostgres } from './embedded/embedded-postgres';

export interface OpenDatabase {
  /** The settings, with the address and secrets that were found or made on this machine. */
  settings: Settings;
  embedded: boolean;
  /** Another process of Gamewharf uses the embedded server, too. */
  joined: boolean;
  stop(): Promise<void>;
}

/** The configured server, or without one the embedded server of the data folder. */
export async function openDatabase(
  settings: Settings,
  mode: 'serve' | 'join-or-start',
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<OpenDatabase> {
  const { DATABASE_URL, DATA_DIR, HOST, PORT } = settings;
  const servingAt = mode === 'serve' && PORT ? `http://${HOST}:${PORT}` : undefined;
  const server = DATABASE_URL
    ? undefined
    : await openEmbeddedPostgres({ dataDir: DATA_DIR, mode, log, servingAt, signal });
  const pepper = settings.API_KEY_PEPPER ?? keptSecret(DATA_DIR, 'api-key-pepper');
  return {
    settings: { ...settings, API_KEY_PEPPER: pepper, DATABASE_URL: server?.url ?? DATABASE_URL },
    embedded: server !== undefined,
    joined: server?.joined ?? false,
    stop: async () => server?.stop(),
  };
}
