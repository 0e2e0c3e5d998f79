import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, type Repository } from 'typeorm';
import { ApiKey } from '../../auth/api-key.entity';
import { isLive } from '../../auth/api-key-lookup';
import { ApiKeysService, type NewKey } from '../../auth/api-keys.service';
import { Database } from '../../platform/database/database';
import { lockUser } from '../../auth/accounts/lock-user';

export const MAX_KEYS = 100;
export const MAX_LISTED = 1000;

const ownKeys = (user_id: number) => ({ user_id, grant_id: IsNull(), revoked_at: IsNull() });

/** A user's own keys that are not revoked; expired ones too, until they are deleted. Keys that applications hold are on another page. */
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

  keyOf(user_id: number, id: number): Promise<ApiKey | null> {
    return this.keys.findOneBy({ id, ...ownKeys(user_id) });
  }

  /** undefined: the user has MAX_KEYS keys. */
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
