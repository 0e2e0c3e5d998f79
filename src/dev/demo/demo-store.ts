import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClientBase } from 'pg';
import { hashPassword, verifyPassword } from '../../auth/sign-in/password-hash';
import type { DemoAccess } from '../../dashboard/layout/demo';
import { hashApiKey, newApiKey } from '../../auth/keys/api-key';
import { createdSecret, readSecret } from '../../platform/config/stored-secrets';
import type { Settings } from '../../platform/config/settings';
import { demoRecords } from './demo';
import { toNdjson } from './demo-file';
import { writeDemoUploads } from './demo-uploads';
import type { FileStorage } from '../../uploads/storage/file-storage';
import { OWN_KEY } from '../../uploads/file-keys';
import { connectTo, importRecords } from '../../operator/import/import-records';

type Found = Omit<DemoAccess, 'api_key' | 'password'> & { user_id: string; password_hash: string | null };

/**
 * Fills an empty store with demo data, whose covers are served at `url`. Returns the accounts and keys to show, without
 * those that no longer exist.
 */
export async function loadDemoStore(
  settings: Settings,
  url?: string,
  now = Date.now(),
): Promise<DemoAccess | undefined> {
  const api_key = createdSecret(settings.DATA_DIR, 'demo-api-key', newApiKey);
  const password = createdSecret(settings.DATA_DIR, 'demo-password', newDemoPassword);
  const pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  const connect = () => connectTo(settings);
  const client = await connect();
  try {
    const { rows } = await client.query<{ empty: boolean }>('SELECT NOT EXISTS (SELECT FROM users) AS empty');
    if (rows[0]!.empty) {
      const uploads = settings.FILES_DIR === undefined ? [] : await writeDemoUploads(settings.FILES_DIR, now);
      const records = [...demoRecords({ api_key, recent_sales: 520, url, now }), ...uploads];
      await importRecords(connect, Readable.from(toNdjson(records)), { pepper });
    } else if (url !== undefined) await moveCovers(client, url);
    const found = await find(client, api_key, pepper);
    if (!found) return undefined;
    const { user_id, password_hash, ...shown } = found;
    const isOurs = await hasPassword(client, user_id, password_hash, password);
    return { api_key, ...shown, ...(isOurs && { password }) };
  } finally {
    await client.end();
  }
}

/** Whether the store has the data of `loadDemoStore`. Changes nothing. */
export async function isDemoStore(settings: Settings): Promise<boolean> {
  const api_key = readSecret(settings.DATA_DIR, 'demo-api-key');
  if (api_key === undefined) return false;
  const client = await connectTo(settings);
  try {
    return (await find(client, api_key, Buffer.from(settings.API_KEY_PEPPER ?? ''))) !== undefined;
  } finally {
    await client.end();
  }
}

async function find(client: ClientBase, api_key: string, pepper: Buffer): Promise<Found | undefined> {
  const { rows } = await client.query<Found>(
    `SELECT u.id AS user_id, u.password_hash, u.username, g.id AS game_id, g.slug, p.email AS buyer_email,
            b.channel_name,
            (SELECT min(up.id) FROM uploads up WHERE up.game_id = g.id AND up.file_key IS NOT NULL) AS upload_id
     FROM api_keys k
     JOIN users u ON u.id = k.user_id
     JOIN games g ON g.user_id = u.id AND g.visibility = 'public'
     JOIN purchase_games pg ON pg.game_id = g.id
     JOIN purchases p ON p.id = pg.purchase_id AND p.status = 'complete'
     JOIN LATERAL (
       SELECT DISTINCT ON (channel_name) channel_name, user_version FROM builds
       WHERE game_id = g.id AND state = 'completed' ORDER BY channel_name, id DESC
     ) b ON b.user_version IS NOT NULL
     WHERE k.key_hash = $1 AND k.revoked_at IS NULL
     ORDER BY g.id, p.id, b.channel_name LIMIT 1`,
    [hashApiKey(api_key, pepper)],
  );
  return rows[0];
}

/**
 * Updates the URLs of covers, because the service may use a different port than when the store was created.
 */
const moveCovers = (client: ClientBase, url: string) =>
  client.query(
    `UPDATE games SET cover_url = $1 || substring(cover_url FROM '/assets/[^/]+$')
     WHERE cover_url LIKE 'http%/assets/cover-_.svg' AND NOT starts_with(cover_url, $1 || '/')`,
    [url],
  );

/**
 * Deletes the contents of the store with the files of `files put`, and fills it with demo data. Operator tokens and
 * signing keys stay.
 */
export async function resetDemoStore(
  settings: Settings,
  url: string,
  storage: FileStorage,
): Promise<DemoAccess | undefined> {
  const client = await connectTo(settings);
  let files: { file_key: string }[];
  try {
    const { rows } = await client.query<{ file_key: string }>(
      `SELECT file_key FROM uploads WHERE file_key ~ $1 UNION SELECT file_key FROM builds WHERE file_key ~ $1
       UNION SELECT file_key FROM build_files WHERE file_key ~ $1`,
      [OWN_KEY],
    );
    files = rows;
    // CASCADE also deletes rows that belong to an account or a game.
    await client.query(
      'TRUNCATE users, purchases, idempotency_keys, webhook_deliveries RESTART IDENTITY CASCADE; DELETE FROM webhooks WHERE user_id IS NOT NULL',
    );
  } finally {
    await client.end();
  }
  const access = await loadDemoStore(settings, url);
  // Files are deleted last, so that an error of the storage leaves a complete store.
  for (const { file_key } of files) await storage.delete(file_key);
  return access;
}

/** Gives the developer the password, unless they have another one; demo stores of older versions have none. */
async function hasPassword(client: ClientBase, user_id: string, hash: string | null, password: string) {
  if (hash !== null) return verifyPassword(hash, password);
  await client.query('UPDATE users SET password_hash = $2 WHERE id = $1 AND password_hash IS NULL', [
    user_id,
    await hashPassword(password),
  ]);
  return true;
}

/** A password of 14 letters, which is easy to type. */
const newDemoPassword = () =>
  String.fromCharCode(...Array.from({ length: 14 }, () => 'a'.charCodeAt(0) + randomInt(26)));
