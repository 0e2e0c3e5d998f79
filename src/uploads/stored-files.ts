import type { Settings } from '../platform/config/settings';
import { withClient } from '../platform/database/with-client';

const STORED_FILES = `
  SELECT count(*)::int AS files FROM (
    SELECT file_key FROM uploads WHERE file_key IS NOT NULL
    UNION SELECT file_key FROM builds WHERE file_key IS NOT NULL) stored`;

/** The number of files of uploads and builds in the storage, for commands that run without the service. */
export const countStoredFiles = ({ DATABASE_URL }: Pick<Settings, 'DATABASE_URL'>): Promise<number> =>
  withClient({ connectionString: DATABASE_URL }, async (client) => {
    const { rows } = await client.query<{ files: number }>(STORED_FILES);
    return rows[0]!.files;
  });
