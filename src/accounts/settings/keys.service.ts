import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, IsNull, type Repository } from 'typeorm';
import { ApiKey } from '../../auth/api-key.entity';
import { isLive } from '../../auth/api-key-lookup';
import { ApiKeysService, type NewKey } from '../../auth/api-keys.service';
import { Database } from '../../database/database';
import { lockUser } from '../lock-user';

const COLUMNS = [
  'id',
  'hint',
  'label',
  'scopes',
  'created_at',
  'last_used_at',
  'last_used_from',
  'expires_at',
] as const satisfies (keyof ApiKey)[];

export type OwnKey = Pick<ApiKey, (typeof COLUMNS)[number]>;

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

  keysOf(user_id: number): Promise<OwnKey[]> {
    return this.own(this.keys.manager, user_id).orderBy('k.id', 'DESC').limit(MAX_LISTED).getRawMany();
  }

  keyOf(user_id: number, id: number): Promise<OwnKey | undefined> {
    return this.own(this.keys.manager, user_id).andWhere({ id }).getRawOne();
  }

  /** undefined: the user has MAX_KEYS keys. */
  make(user_id: number, key: Omit<NewKey, 'user_id'>): Promise<{ id: number; key: string } | undefined> {
    return this.database.transaction(async (db) => {
      await lockUser(db, user_id);
      if ((await this.own(db, user_id).andWhere(isLive('k')).getCount()) >= MAX_KEYS) return undefined;
      return this.apiKeys.createIn(db, { ...key, user_id });
    });
  }

  /** false: no such key. */
  async rename(user_id: number, id: number, label: string): Promise<boolean> {
    return (await this.keys.update({ id, ...ownKeys(user_id) }, { label })).affected === 1;
  }

  private own(db: EntityManager, user_id: number) {
    return db
      .createQueryBuilder(ApiKey, 'k')
      .select(COLUMNS.map((column) => `k.${column} AS ${column}`))
      .where(ownKeys(user_id));
  }
}
