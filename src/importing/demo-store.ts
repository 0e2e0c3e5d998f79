import { Readable } from 'node:stream';
import { Client } from 'pg';
import { hashApiKey } from '../auth/api-key-hash';
import { keptSecret } from '../config/kept-secrets';
import type { Settings } from '../config/settings';
import { demoRecords } from './demo';
import { ndjsonOf } from './demo-file';
import { connectTo, importRecords } from './import-records';

/** Fills an empty store with demo data, once; answers the API key of its first developer while that key works. */
export async function loadDemoStore(settings: Settings): Promise<string | undefined> {
  const api_key = keptSecret(settings.DATA_DIR, 'demo-api-key');
  const pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  const connect = () => connectTo(settings);
  const client = await connect();
  try {
    const { rows } = await client.query<{ empty: boolean }>('SELECT NOT EXISTS (SELECT FROM users) AS empty');
    if (rows[0]!.empty) {
      await importRecords(connect, Readable.from(ndjsonOf(demoRecords({ api_key }))), { pepper });
      return api_key;
    }
    const known = await client.query('SELECT FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL', [
      hashApiKey(api_key, pepper),
    ]);
    return known.rowCount ? api_key : undefined;
  } finally {
    await client.end();
  }
}
