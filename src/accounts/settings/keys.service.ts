import { Injectable } from '@nestjs/common';
import { isLive } from '../../auth/api-key-lookup';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';

export interface OwnKey {
  id: number;
  hint: string;
  label: string | null;
  scopes: string[] | null;
  created_at: string;
  last_used_at: string | null;
}

export const MAX_KEYS = 100;

// Keys that applications hold are on another page, under the application's name.
const OWN = `SELECT k.id, k.hint, k.label, k.scopes, k.created_at, k.last_used_at
  FROM api_keys k WHERE k.user_id = $1 AND k.grant_id IS NULL AND ${isLive('k')}`;
const OWN_KEYS = statement<OwnKey>('own_keys', `${OWN} ORDER BY k.id DESC LIMIT 1000`);
const OWN_KEY = statement<OwnKey>('own_key', `${OWN} AND k.id = $2`);

/** The keys that somebody made, as long as they open something. */
@Injectable()
export class KeysService {
  constructor(private readonly database: Database) {}

  keysOf(user_id: number): Promise<OwnKey[]> {
    return this.database.rows(OWN_KEYS, [user_id]);
  }

  keyOf(user_id: number, id: number): Promise<OwnKey | undefined> {
    return this.database.row(OWN_KEY, [user_id, id]);
  }
}
