import { keptSecret } from '../config/kept-secrets';
import type { Settings } from '../config/settings';
import { openEmbeddedPostgres } from './embedded/embedded-postgres';

export interface OpenDatabase {
  /** The settings, completed by what was found or made for this machine. */
  settings: Settings;
  embedded: boolean;
  stop(): Promise<void>;
}

/** The configured server, or without one the embedded server of the data folder. */
export async function openDatabase(
  settings: Settings,
  mode: 'serve' | 'join-or-start',
  log: (line: string) => void,
): Promise<OpenDatabase> {
  const pepper = settings.API_KEY_PEPPER ?? keptSecret(settings.DATA_DIR, 'api-key-pepper');
  if (settings.DATABASE_URL)
    return {
      settings: { ...settings, API_KEY_PEPPER: pepper },
      embedded: false,
      stop: () => Promise.resolve(),
    };
  const server = await openEmbeddedPostgres({ dataDir: settings.DATA_DIR, mode, log });
  return {
    settings: { ...settings, API_KEY_PEPPER: pepper, DATABASE_URL: server.url },
    embedded: true,
    stop: () => server.stop(),
  };
}
