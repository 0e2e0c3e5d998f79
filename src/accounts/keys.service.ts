import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { hintOf, newApiKey } from '../auth/api-key';
import { hashApiKey } from '../auth/api-key-hash';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { statement } from '../database/statement';

export interface KeyRow {
  id: number;
  hint: string;
  label: string | null;
  scopes: string[] | null;
  created_at: string;
  last_used_at: string | null;
}

export interface NewKey {
  user_id: number;
  label?: string | null;
  scopes?: string[] | null;
  grant_id?: number;
  /** Seconds; absent: until it is revoked. */
  lives?: number;
}

export const MAX_KEYS = 100;

// Keys that applications hold are on another page, under the application's name.
const OWN = `user_id = $1 AND grant_id IS NULL AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;
const COLUMNS = 'id, hint, label, scopes, created_at, last_used_at';
const KEYS_OF = statement(
  'keys_of_user',
  `SELECT ${COLUMNS} FROM api_keys WHERE ${OWN} ORDER BY id DESC LIMIT 1000`,
);
const KEY_OF = statement('key_of_user', `SELECT ${COLUMNS} FROM api_keys WHERE ${OWN} AND id = $2`);
const REVOKE = statement(
  'revoke_key_of_user',
  `UPDATE api_keys SET revoked_at = now() WHERE ${OWN} AND id = $2 RETURNING id`,
);

@Injectable()
export class KeysService {
  private readonly pepper: Buffer;

  constructor(
    private readonly database: Database,
    settings: Settings,
  ) {
    this.pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  }

  keysOf(user_id: number): Promise<KeyRow[]> {
    return this.database.rows(KEYS_OF, [user_id]);
  }

  keyOf(user_id: number, id: number): Promise<KeyRow | undefined> {
    return this.database.row(KEY_OF, [user_id, id]);
  }

  /** The text of the key is in this answer and nowhere else. */
  async make(
    db: EntityManager,
    { user_id, label, scopes, grant_id, lives }: NewKey,
  ): Promise<{ id: number; key: string }> {
    const key = newApiKey();
    const [row] = await db.query<{ id: number }[]>(
      `INSERT INTO api_keys (key_hash, hint, user_id, label, scopes, grant_id, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7)) RETURNING id`,
      [
        hashApiKey(key, this.pepper),
        hintOf(key),
        user_id,
        label ?? null,
        scopes ?? null,
        grant_id ?? null,
        lives ?? null,
      ],
    );
    return { id: row!.id, key };
  }

  async revoke(user_id: number, id: number): Promise<boolean> {
    const revoked = await this.database.row(REVOKE, [user_id, id]);
    return revoked !== undefined;
  }
}
