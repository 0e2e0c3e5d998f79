import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { hintOf, newApiKey } from './api-key';
import { hashApiKey } from './api-key-hash';
import { VerifiedCredentials } from './verified-credentials';

/** A key as its owner sees it; timestamps as PostgreSQL writes them. */
export interface ApiKeyRow {
  id: number;
  hint: string;
  label: string | null;
  scopes: string[] | null;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
}

const CREATE = statement<{ id: number }>(
  'create_api_key',
  'INSERT INTO api_keys (key_hash, hint, user_id, scopes, label) VALUES ($1, $2, $3, $4, $5) RETURNING id',
);

export const KEYS_OF_USER = statement<ApiKeyRow>(
  'api_keys_of_user',
  `SELECT id, hint, label, scopes, created_at, last_used_at, revoked_at
   FROM api_keys WHERE user_id = $1 ORDER BY id DESC`,
);

const REVOKE = statement(
  'revoke_api_key',
  `UPDATE api_keys SET revoked_at = now()
   WHERE id = $1 AND ($2::bigint IS NULL OR user_id = $2) AND revoked_at IS NULL RETURNING id`,
);

@Injectable()
export class ApiKeysService {
  private readonly pepper: Buffer;

  constructor(
    private readonly database: Database,
    private readonly verified: VerifiedCredentials,
    settings: Settings,
  ) {
    this.pepper = Buffer.from(settings.API_KEY_PEPPER ?? '');
  }

  /** The key is in the answer and nowhere else: what is stored cannot be turned back into it. */
  async create(
    user_id: number,
    { scopes = null, label = null }: { scopes?: readonly string[] | null; label?: string | null } = {},
  ): Promise<{ id: number; key: string }> {
    const key = newApiKey();
    const values = [hashApiKey(key, this.pepper), hintOf(key), user_id, scopes, label];
    const row = await this.database.row(CREATE, values);
    return { id: row!.id, key };
  }

  /** For an application, under a user's consent, in the transaction that holds it; without `lives` until it is revoked. */
  async createUnder(
    db: EntityManager,
    grant: { id: number; user_id: number },
    scopes: readonly string[],
    lives: { seconds: number } | null,
  ): Promise<{ id: number; key: string }> {
    const key = newApiKey();
    const [row] = await db.query<{ id: number }[]>(
      `INSERT INTO api_keys (key_hash, hint, user_id, scopes, grant_id, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6)) RETURNING id`,
      [hashApiKey(key, this.pepper), hintOf(key), grant.user_id, scopes, grant.id, lives?.seconds ?? null],
    );
    return { id: row!.id, key };
  }

  /** After keys were revoked by another statement than this service's. */
  forget(): void {
    this.verified.forget();
  }

  /** Newest first, revoked ones included. */
  keysOf(user_id: number): Promise<ApiKeyRow[]> {
    return this.database.rows(KEYS_OF_USER, [user_id]);
  }

  /** Whether there was a live key to revoke; of one user, or of anybody. Its JWTs end with it. */
  async revoke(id: number, user_id: number | null): Promise<boolean> {
    const row = await this.database.row(REVOKE, [id, user_id]);
    if (row) this.verified.forget(id);
    return row !== undefined;
  }
}
