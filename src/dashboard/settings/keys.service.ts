import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, type Repository } from 'typeorm';
import { ApiKey } from '../../auth/api-key.entity';
import { isLive } from '../../auth/api-key-lookup';
import { ApiKeysService, type NewKey } from '../../auth/api-keys.service';
import { COUNTED_DAYS } from '../../auth/api-key-requests.entity';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { lockUser } from '../../auth/accounts/lock-user';

export const MAX_KEYS = 100;
export const MAX_LISTED = 1000;

const REQUESTS = longRead<{ api_key_id: number; ago: number; requests: number }>(
  'requests_of_api_keys',
  `SELECT api_key_id, today - day AS ago, requests
   FROM api_key_requests, (SELECT (now() AT TIME ZONE 'UTC')::date AS today) t
   WHERE api_key_id = ANY ($1::bigint[]) AND day > today - ${COUNTED_DAYS} AND day <= today`,
);

const ownKeys = (user_id: number) => ({ user_id, grant_id: IsNull(), revoked_at: IsNull() });

/**
 * A user's own keys that are not revoked, including expired ones until they are deleted. Keys that apps hold are on
 * another page.
 */
@Injectable()
export class KeysService {
  constructor(
    private readonly database: Database,
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly apiKeys: ApiKeysService,
  ) {}

  keysOf(user_id: number): Promise<ApiKey[]> {
    return this.keys.find({ where: ownKeys(user_id), order: { id: 'DESC' }, take: MAX_LISTED });
  }

  /** The number of requests per key on each of the last days, ending with the newest. */
  async requestsOf(keys: readonly ApiKey[]): Promise<Map<number, number[]>> {
    const days = new Map(keys.map(({ id }) => [id, Array<number>(COUNTED_DAYS).fill(0)]));
    for (const { api_key_id, ago, requests } of await this.database.rows(REQUESTS, [[...days.keys()]]))
      days.get(api_key_id)![COUNTED_DAYS - 1 - ago] = requests;
    return days;
  }

  keyOf(user_id: number, id: number): Promise<ApiKey | null> {
    return this.keys.findOneBy({ id, ...ownKeys(user_id) });
  }

  /** Returns undefined if the user has MAX_KEYS keys. */
  make(user_id: number, key: Omit<NewKey, 'user_id'>): Promise<{ id: number; key: string } | undefined> {
    return this.database.transaction(async (db) => {
      await lockUser(db, user_id);
      const live = db.createQueryBuilder(ApiKey, 'k').where(ownKeys(user_id)).andWhere(isLive('k'));
      if ((await live.getCount()) >= MAX_KEYS) return undefined;
      return this.apiKeys.createIn(db, { ...key, user_id });
    });
  }

  /** false: no such key. */
  async rename(user_id: number, id: number, label: string): Promise<boolean> {
    return (await this.keys.update({ id, ...ownKeys(user_id) }, { label })).affected === 1;
  }
}
