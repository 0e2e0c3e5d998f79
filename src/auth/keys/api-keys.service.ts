import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, type FindOptionsWhere, In, IsNull, type Repository } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { lockUser } from '../accounts/lock-user';
import { User } from '../accounts/user.entity';
import { hashApiKey, keyHint, newApiKey, listPeppers } from './api-key';
import { ApiKey } from './api-key.entity';
import { isLive } from './api-key-lookup';
import { COUNTED_DAYS } from './api-key-requests.entity';
import { CredentialCache } from './credential-cache';

/** Maximum number of keys that a user can create on the page for API keys. */
export const MAX_API_KEYS = 100;
const MAX_LISTED_KEYS = 1000;

interface NewKey {
  /** Absent or null: all scopes. */
  scopes?: readonly string[] | null;
  label?: string | null;
  /** A timestamp; absent or null if it doesn't expire. */
  expires_at?: string | null;
  /** Used instead of `expires_at`. */
  seconds?: number;
  grant_id?: number;
  family_id?: string;
}

interface NewApiKey extends Pick<ApiKey, 'id' | 'created_at'> {
  key: string;
}

/** Excludes the keys that apps hold. Includes expired keys until they are deleted. */
const own = (user_id: number) => ({ user_id, grant_id: IsNull(), revoked_at: IsNull() });

const COUNTED_REQUESTS = longRead<{ api_key_id: number; ago: number; requests: number }>(
  'counted_requests_of_keys',
  `SELECT api_key_id, today - day AS ago, requests
   FROM api_key_requests, (SELECT (now() AT TIME ZONE 'UTC')::date AS today) t
   WHERE api_key_id = ANY ($api_key_ids::bigint[]) AND day > today - ${COUNTED_DAYS} AND day <= today`,
);

@Injectable()
export class ApiKeysService {
  private readonly peppers: string[];

  constructor(
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly database: Database,
    private readonly verified: CredentialCache,
    settings: Settings,
  ) {
    this.peppers = listPeppers(settings);
  }

  /** Returns the only copy of the key: only its hash is stored. */
  create(user_id: number, key: NewKey = {}): Promise<NewApiKey> {
    return this.createIn(this.keys.manager, user_id, key);
  }

  /** Whether this is a key of the user that isn't revoked. */
  belongsTo(user_id: number, key: string): Promise<boolean> {
    return this.keys.existsBy({
      key_hash: hashApiKey(key, this.peppers[0]!),
      user_id,
      revoked_at: IsNull(),
    });
  }

  /** Returns undefined if the user has MAX_API_KEYS keys. */
  createOwn(user_id: number, key: NewKey): Promise<NewApiKey | undefined> {
    return this.database.transaction(
      async (db) => {
        await lockUser(db, user_id);
        const live = db.createQueryBuilder(ApiKey, 'k').where(own(user_id)).andWhere(isLive('k'));
        return (await live.getCount()) < MAX_API_KEYS ? this.createIn(db, user_id, key) : undefined;
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  /**
   * Issues the token of the implicit grant. A grant has only one: call `forget` for the `replaced` ones after
   * the commit.
   */
  async replaceImplicit(
    db: EntityManager,
    grant: { id: number; user_id: number },
    scopes: readonly string[],
  ): Promise<{ text: string; replaced: number[] }> {
    const replaced = await this.revokeIn(db, {
      grant_id: grant.id,
      family_id: IsNull(),
      expires_at: IsNull(),
    });
    const { key } = await this.createIn(db, grant.user_id, { grant_id: grant.id, scopes });
    return { text: key, replaced };
  }

  async createIn(
    db: EntityManager,
    user_id: number,
    { scopes = null, label = null, expires_at = null, grant_id, family_id, seconds }: NewKey,
  ): Promise<NewApiKey> {
    const key = newApiKey();
    const { generatedMaps } = await db.insert(ApiKey, {
      key_hash: hashApiKey(key, this.peppers[0]!),
      hint: keyHint(key),
      user_id,
      scopes: scopes && [...scopes],
      label,
      expires_at: seconds === undefined ? expires_at : () => `now() + make_interval(secs => ${seconds})`,
      grant_id,
      family_id,
    });
    return { ...(generatedMaps[0] as Pick<ApiKey, 'id' | 'created_at'>), key };
  }

  /** Lists a user's keys, newest first, including revoked ones. */
  listKeys(user_id: number): Promise<ApiKey[]> {
    return this.keys.find({ where: { user_id }, order: { id: 'DESC' } });
  }

  ownKeys(user_id: number): Promise<ApiKey[]> {
    return this.keys.find({ where: own(user_id), order: { id: 'DESC' }, take: MAX_LISTED_KEYS });
  }

  ownKey(user_id: number, id: number): Promise<ApiKey | null> {
    return this.keys.findOneBy({ id, ...own(user_id) });
  }

  async rename(user_id: number, id: number, label: string): Promise<boolean> {
    return (await this.keys.update({ id, ...own(user_id) }, { label })).affected === 1;
  }

  /** The number of requests per key on each of the last days, ending with today. */
  async countRequests(keys: readonly ApiKey[]): Promise<Map<number, number[]>> {
    const days = new Map(keys.map(({ id }) => [id, Array<number>(COUNTED_DAYS).fill(0)]));
    const rows = await this.database.rows(COUNTED_REQUESTS, { api_key_ids: [...days.keys()] });
    for (const { api_key_id, ago, requests } of rows)
      days.get(api_key_id)![COUNTED_DAYS - 1 - ago] = requests;
    return days;
  }

  /** Revokes a key and its JWTs; `user_id` null: of any user. Returns false if no live key has this ID. */
  async revoke(id: number, user_id: number | null): Promise<boolean> {
    const revoked = await this.revokeIn(this.keys.manager, { id, ...(user_id !== null && { user_id }) });
    this.forget(revoked);
    return revoked.length > 0;
  }

  /**
   * A key that may issue JWTs for games: the user's own keys may, and an app's only if the user agreed. `expires_at` is
   * in seconds since 1970, or null if the key has no expiry.
   */
  findGameStarter(id: number): Promise<{ expires_at: number | null } | undefined> {
    return this.keys
      .createQueryBuilder('k')
      .leftJoin('k.grant', 'g')
      .leftJoin('g.application', 'a')
      .select('floor(extract(epoch FROM k.expires_at))::float8', 'expires_at')
      .where({ id })
      .andWhere('(k.grant_id IS NULL OR (g.may_start_games AND a.may_start_games))')
      .getRawOne<{ expires_at: number | null }>();
  }

  /** Whether a request with this key would be accepted. */
  isLive(text: string): Promise<boolean> {
    return this.keys.createQueryBuilder('k').where(this.withText(text)).andWhere(isLive('k')).getExists();
  }

  /** SQL condition: the key with this text, under any pepper. */
  withText(text: string): FindOptionsWhere<ApiKey> {
    return { key_hash: In(this.peppers.map((pepper) => hashApiKey(text, pepper))) };
  }

  /** Runs in a transaction; call `forget` with the result after the commit. */
  async revokeIn(db: EntityManager, keys: FindOptionsWhere<ApiKey>): Promise<number[]> {
    const { raw } = await db
      .createQueryBuilder()
      .update(ApiKey)
      .set({
        revoked_at: () => 'now()',
        // An app's key expires too, so that ExpiredRows deletes it.
        expires_at: () => 'CASE WHEN grant_id IS NULL THEN expires_at ELSE least(expires_at, now()) END',
      })
      .where({ ...keys, revoked_at: IsNull() })
      .returning('id')
      .execute();
    return (raw as { id: number }[]).map(({ id }) => id);
  }

  /** Revokes all JWTs of a user. Other replicas follow within a second. */
  async revokeAllTokens(user_id: number): Promise<void> {
    await this.keys.manager.increment(User, { id: user_id }, 'token_generation', 1);
    this.verified.forgetTokens();
  }

  /** Makes this replica reject these keys, once their revocation is committed. */
  forget(ids: readonly number[]): void {
    this.verified.forget(ids);
  }

  /** Makes this replica look up all keys again, after any change to them. */
  forgetAll(): void {
    this.verified.forgetAll();
  }
}
