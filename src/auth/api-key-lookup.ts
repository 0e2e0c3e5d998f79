import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Request } from 'express';
import type { Repository } from 'typeorm';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { BackgroundWriter } from '../platform/database/background-writer';
import { Database } from '../platform/database/database';
import { batched } from '../platform/database/batched';
import { read, statement } from '../platform/database/statement';
import { hashApiKey, mayBeApiKey, peppersOf } from './api-key';
import { ApiKey } from './api-key.entity';
import { type Credential, trackersOf, type Trackers } from './credential';
import { ROOT_SCOPES } from './scopes';

/** Days without use after which a token of the implicit grant expires. */
const UNUSED_DAYS = 90;

/** Whether a row of api_keys is live, as a condition for a WHERE clause. A token of the implicit grant has no fixed expiry. */
export const isLive = (key: string) =>
  `${key}.revoked_at IS NULL AND (${key}.expires_at > now() OR ${key}.expires_at IS NULL AND (
     ${key}.grant_id IS NULL
     OR greatest(${key}.created_at, ${key}.last_used_at) > now() - interval '${UNUSED_DAYS} days'))`;

export const LIVE_KEYS = read<LiveKey>(
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

/** A live key. Times are those of `Clock.monotonic()`. */
export interface KnownKey {
  credential: Credential & { api_key_id: number };
  trackers: Trackers;
  /** When the lookup was sent. */
  readAt: number;
  ends: number;
  /** The time at which its last use was recorded. */
  used: number;
  /** Requests that aren't counted in the database yet. */
  requests: number;
}

const WRITE_INTERVAL = 1000;
const COUNT_INTERVAL = 15_000;
const BATCH_SIZE = 1000;

// SKIP LOCKED: another replica is writing the same minute.
const WRITE_USES = statement(
  'write_api_key_uses',
  `UPDATE api_keys k SET last_used_at = now(), last_used_from = used.network
   FROM unnest($1::bigint[], $2::cidr[]) used (id, network)
   WHERE k.id = used.id AND k.id IN (
     SELECT id FROM api_keys
     WHERE id = ANY ($1) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
     FOR UPDATE SKIP LOCKED)`,
);

// Grouped, because a key that was verified twice is in the batch twice. Ordered, because replicas update the same keys.
const COUNT_REQUESTS = statement(
  'count_api_key_requests',
  `INSERT INTO api_key_requests AS stored (api_key_id, day, requests)
   SELECT k.id, (now() AT TIME ZONE 'UTC')::date, sum(used.requests)
   FROM unnest($1::bigint[], $2::bigint[]) used (id, requests) JOIN api_keys k USING (id) GROUP BY k.id ORDER BY k.id
   ON CONFLICT (api_key_id, day) DO UPDATE SET requests = stored.requests + excluded.requests`,
);

/** When and where a key was last used. */
interface Use {
  id: number;
  /** Null: not known. */
  network: string | null;
}

/** Writes and counts uses of keys in the background. */
@Injectable()
export class ApiKeyUses implements BeforeApplicationShutdown {
  private readonly log = new Logger(ApiKeyUses.name);
  private readonly writer = new BackgroundWriter<Use>(
    WRITE_INTERVAL,
    BATCH_SIZE,
    (batch) => this.write(batch),
    ({ message }) => this.log.warn(`Uses of API keys were not written: ${message}`),
  );
  private readonly counter = new BackgroundWriter<KnownKey>(
    COUNT_INTERVAL,
    BATCH_SIZE,
    (batch) => this.count(batch),
    ({ message }) => this.log.warn(`Requests of API keys were not counted: ${message}`),
  );

  constructor(private readonly database: Database) {}

  add(use: Use): void {
    this.writer.add(use);
  }

  addRequest(key: KnownKey): void {
    if (key.requests++ === 0 && !this.counter.add(key)) key.requests = 0;
  }

  /** Writes all pending uses. */
  async flush(): Promise<void> {
    await this.writer.flush();
    await this.counter.flush();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }

  private async count(batch: KnownKey[]): Promise<void> {
    const ids = batch.map(({ credential }) => credential.api_key_id);
    const counts = batch.map((key) => key.requests);
    for (const key of batch) key.requests = 0;
    await this.database.rows(COUNT_REQUESTS, [ids, counts]);
  }

  private async write(batch: Use[]): Promise<void> {
    const networks = new Map(batch.map(({ id, network }) => [id, network]));
    await this.database.rows(WRITE_USES, [[...networks.keys()], [...networks.values()]]);
  }
}

/** Finds keys by their text. Lookups in the same tick of the event loop share one statement. */
@Injectable()
export class ApiKeyLookup {
  private readonly peppers: string[];
  private readonly liveKeys = batched((keys: readonly string[][]) => this.load(keys));

  constructor(
    private readonly database: Database,
    private readonly uses: ApiKeyUses,
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly clock: Clock,
    settings: Settings,
  ) {
    this.peppers = peppersOf(settings);
  }

  async find(text: string, req?: Request): Promise<KnownKey | undefined> {
    if (!mayBeApiKey(text)) return undefined;
    const readAt = this.clock.monotonic();
    const hashes = this.peppers.map((pepper) => asBytea(hashApiKey(text, pepper)));
    const key = await this.liveKeys.load(hashes);
    if (!key) return undefined;
    const { hash, id, user_id, scopes, unused_ms, lives_ms } = key;
    if (hash !== hashes[0])
      // Under the current pepper. If it fails, the next lookup tries again.
      this.keys.update({ id }, { key_hash: hashApiKey(text, this.peppers[0]!) }).catch(() => undefined);
    const credential: KnownKey['credential'] = {
      type: 'key',
      api_key_id: id,
      user_id,
      scopes: scopes ? [...new Set(scopes)].sort() : ROOT_SCOPES,
    };
    const known: KnownKey = {
      credential,
      trackers: trackersOf(credential),
      readAt,
      ends: readAt + (lives_ms ?? Infinity),
      used: readAt - (unused_ms ?? Infinity),
      requests: 0,
    };
    this.used(known, readAt, req);
    return known;
  }

  /** Uses are recorded to the minute. */
  used(key: KnownKey, now: number, req?: Request): void {
    this.uses.addRequest(key);
    if (now - key.used < MINUTE) return;
    key.used = now;
    this.uses.add({ id: key.credential.api_key_id, network: req?.exchange.client.within('site') || null });
  }

  /** Takes the hashes of each key; the hash under the current pepper is the first. */
  private async load(keys: readonly string[][]): Promise<(LiveKey | undefined)[]> {
    const found = new Map((await this.database.rows(LIVE_KEYS, [keys.flat()])).map((key) => [key.hash, key]));
    return keys.map((hashes) => hashes.map((hash) => found.get(hash)).find((key) => key !== undefined));
  }
}

const asBytea = (hash: Buffer) => `\\x${hash.toString('hex')}`;
