import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import DataLoader from 'dataloader';
import type { Repository } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { read } from '../../platform/database/statement';
import { hashApiKey, mayBeApiKey, listPeppers } from './api-key';
import { ApiKey } from './api-key.entity';

/** Days without use after which a token of the implicit grant expires. */
const UNUSED_DAYS = 90;

/** SQL condition: whether a row of api_keys is live. A token of the implicit grant has no fixed expiry. */
export const isLive = (key: string) =>
  `${key}.revoked_at IS NULL AND (${key}.expires_at > now() OR ${key}.expires_at IS NULL AND (
     ${key}.grant_id IS NULL
     OR greatest(${key}.created_at, ${key}.last_used_at) > now() - interval '${UNUSED_DAYS} days'))`;

interface LiveKey extends Pick<ApiKey, 'id' | 'user_id' | 'scopes'> {
  /** The app that holds the key; null: the user's own key. */
  client_id: string | null;
  hash: string;
  /** Null: the key has no expiry. */
  lives_ms: number | null;
}

export const LIVE_KEYS = read<LiveKey>(
  'live_api_keys',
  `SELECT k.key_hash::text AS hash, k.id, k.user_id, k.scopes,
          (SELECT g.client_id FROM oauth_grants g WHERE g.id = k.grant_id) AS client_id,
          (extract(epoch FROM k.expires_at - now()) * 1000)::float8 AS lives_ms
   FROM api_keys k WHERE k.key_hash = ANY ($hashes) AND ${isLive('k')}`,
);

/** Finds live keys by their text. Lookups in the same tick of the event loop share one statement. */
@Injectable()
export class ApiKeyLookup {
  private readonly peppers: string[];
  private readonly liveKeys = new DataLoader((keys: readonly string[][]) => this.load(keys), {
    cache: false,
    batchScheduleFn: setImmediate,
  });

  constructor(
    private readonly database: Database,
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    settings: Settings,
  ) {
    this.peppers = listPeppers(settings);
  }

  async find(text: string): Promise<LiveKey | undefined> {
    if (!mayBeApiKey(text)) return undefined;
    const hashes = this.peppers.map((pepper) => `\\x${hashApiKey(text, pepper).toString('hex')}`);
    const key = await this.liveKeys.load(hashes);
    if (key && key.hash !== hashes[0])
      // Stores the hash under the current pepper. If that fails, the next lookup tries again.
      this.keys
        .update({ id: key.id }, { key_hash: hashApiKey(text, this.peppers[0]!) })
        .catch(() => undefined);
    return key;
  }

  /** Takes the hashes of each key under all peppers. */
  private async load(keys: readonly string[][]): Promise<(LiveKey | undefined)[]> {
    const found = new Map(
      (await this.database.rows(LIVE_KEYS, { hashes: keys.flat() })).map((key) => [key.hash, key]),
    );
    return keys.map((hashes) => hashes.map((hash) => found.get(hash)).find((key) => key !== undefined));
  }
}
