import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { BatchLoader } from '../database/pool/batch-loader';
import { statement } from '../database/statement';
import { ApiKeyUses } from './api-key-uses';
import { hashApiKey } from './api-key-hash';
import { mayBeApiKey } from './api-key';
import type { ApiKey } from './api-key.entity';
import { type Credential, limitedAs, type LimitedAs } from './credential';
import { ROOT_SCOPES } from './scopes';

/** Days without use after which a token of the implicit grant expires. */
const UNUSED_DAYS = 90;

/** Whether a row of api_keys is live, as a condition for a WHERE clause. A token of the implicit grant has no fixed expiry. */
export const isLive = (key: string) =>
  `${key}.revoked_at IS NULL AND (${key}.expires_at > now() OR ${key}.expires_at IS NULL AND (
     ${key}.grant_id IS NULL
     OR greatest(${key}.created_at, ${key}.last_used_at) > now() - interval '${UNUSED_DAYS} days'))`;

export const LIVE_KEYS = statement<LiveKey>(
  'live_api_keys',
  `SELECT k.key_hash::text AS hash, k.id, k.user_id, k.scopes,
          (extract(epoch FROM now() - k.last_used_at) * 1000)::float8 AS unused_ms,
          (extract(epoch FROM k.expires_at - now()) * 1000)::float8 AS lives_ms
   FROM api_keys k WHERE k.key_hash = ANY ($1) AND ${isLive('k')}`,
);

const MINUTE = 60_000;

interface LiveKey extends Pick<ApiKey, 'id' | 'user_id' | 'scopes'> {
  hash: string;
  /** Null: never used. */
  unused_ms: number | null;
  /** Null: the key has no expiry. */
  lives_ms: number | null;
}

/** A live key. Times are those of `performance.now()`. */
export interface KnownKey {
  credential: Credential & { api_key_id: number };
  limited_as: LimitedAs;
  /** When the lookup was sent. */
  readAt: number;
  ends: number;
  /** When its last use was recorded. */
  used: number;
}

/** Finds keys by their text. Lookups in the same turn of the event loop share one statement. */
@Injectable()
export class ApiKeyLookup {
  private readonly peppers: Buffer[];
  private readonly liveKeys = new BatchLoader((keys: string[][]) => this.load(keys));

  constructor(
    private readonly database: Database,
    private readonly uses: ApiKeyUses,
    settings: Settings,
  ) {
    this.peppers = [settings.API_KEY_PEPPER ?? '', ...settings.API_KEY_PEPPER_PREVIOUS].map((pepper) =>
      Buffer.from(pepper),
    );
  }

  async find(text: string, req?: Request): Promise<KnownKey | undefined> {
    if (!mayBeApiKey(text)) return undefined;
    const readAt = performance.now();
    const hashes = this.peppers.map((pepper) => asBytea(hashApiKey(text, pepper)));
    const key = await this.liveKeys.load(hashes);
    if (!key) return undefined;
    const { hash, id, user_id, scopes, unused_ms, lives_ms } = key;
    if (hash !== hashes[0]) this.uses.rehash(id, hashApiKey(text, this.peppers[0]!));
    const credential: KnownKey['credential'] = {
      type: 'key',
      api_key_id: id,
      user_id,
      scopes: scopes ? [...new Set(scopes)].sort() : ROOT_SCOPES,
    };
    const known: KnownKey = {
      credential,
      limited_as: limitedAs(credential),
      readAt,
      ends: readAt + (lives_ms ?? Infinity),
      used: readAt - (unused_ms ?? Infinity),
    };
    this.used(known, readAt, req);
    return known;
  }

  /** Uses are recorded to the minute. */
  used(key: KnownKey, now: number, req?: Request): void {
    if (now - key.used < MINUTE) return;
    key.used = now;
    this.uses.used(key.credential.api_key_id, req?.exchange.sender.site || null);
  }

  /** Takes the hashes of each key; the hash under the current pepper is the first. */
  private async load(keys: string[][]): Promise<(LiveKey | undefined)[]> {
    const found = new Map((await this.database.rows(LIVE_KEYS, [keys.flat()])).map((key) => [key.hash, key]));
    return keys.map((hashes) => hashes.map((hash) => found.get(hash)).find((key) => key !== undefined));
  }
}

const asBytea = (hash: Buffer) => `\\x${hash.toString('hex')}`;
