import { Readable } from 'node:stream';
import { newApiKey } from '../auth/api-key';
import { hashApiKey } from '../auth/api-key-hash';
import { keptSecret } from '../config/kept-secrets';
import type { Settings } from '../config/settings';
import { demoRecords } from './demo';
import { ndjsonOf } from './demo-file';
import { connectTo, importRecords } from './import-records';

/** What `npm start` shows of the demo store: a developer's key, and a game with a buyer and a build. */
export interface DemoAccess {
  api_key: string;
  username: string;
  game_id: number;
  slug: string;
  buyer_email: string;
  channel_name: string;
}

/** Fills an empty store with demo data. Returns what to show, or undefined where that no longer exists. */
export async function loadDemoStore(settings: Settings): Promise<DemoAccess | undefined> {
  const api_key = keptSecret(settings.DATA_DIR, 'demo-api-key', newApiKey);
  const pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  const connect = () => connectTo(settings);
  const client = await connect();
  try {
    const { rows } = await client.query<{ empty: boolean }>('SELECT NOT EXISTS (SELECT FROM users) AS empty');
    if (rows[0]!.empty)
      await importRecords(connect, Readable.from(ndjsonOf(demoRecords({ api_key }))), { pepper });
    const found = await client.query<Omit<DemoAccess, 'api_key'>>(
      `SELECT u.username, g.id AS game_id, g.slug, p.email AS buyer_email, b.channel_name
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
    return found.rows[0] && { api_key, ...found.rows[0] };
  } finally {
    await client.end();
  }
}
