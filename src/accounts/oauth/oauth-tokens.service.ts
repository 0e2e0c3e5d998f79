import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService } from '../../auth/api-keys.service';
import { covers } from '../../auth/scopes';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { type Grant, GrantsService } from './grants.service';
import { invalidGrant, invalidScope } from './oauth-errors';
import { hashOf, randomToken, seal, unseal } from '../web/sealed';

/** What a client gets: RFC 6749, section 5.1, and the key as an object, which is how the store's own clients read it. */
export interface Tokens {
  access_token: string;
  token_type: 'bearer';
  expires_in: number;
  refresh_token: string;
  scope: string;
  key: { id: number; user_id: number; key: string };
}

export const ACCESS_SECONDS = 3600;
const REFRESH_DAYS = 90;
const RETRY_SECONDS = 10;

interface RefreshRow {
  family_id: string;
  scopes: string[];
  expired: boolean;
  used_at: string | null;
  retried: boolean;
  answer: Buffer | null;
  successor_used: boolean | null;
}

const GRANT_OF_TOKEN = statement<{ grant_id: number }>(
  'grant_of_refresh_token',
  `SELECT t.grant_id FROM oauth_refresh_tokens t JOIN oauth_grants g ON g.id = t.grant_id
   WHERE t.token_hash = $1 AND g.client_id = $2`,
);

@Injectable()
export class OauthTokensService {
  constructor(
    private readonly database: Database,
    private readonly grants: GrantsService,
    private readonly keys: ApiKeysService,
  ) {}

  /** Under a grant that is held. */
  async issue(
    db: EntityManager,
    grant: Grant,
    scopes: string[],
    {
      family_id = randomUUID() as string,
      refreshable = scopes,
    }: { family_id?: string; refreshable?: string[] } = {},
  ): Promise<Tokens> {
    const { id, key } = await this.keys.createUnder(db, grant, scopes, { seconds: ACCESS_SECONDS });
    const refresh_token = randomToken();
    await db.query(
      `INSERT INTO oauth_refresh_tokens (token_hash, grant_id, family_id, scopes, api_key_id, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(days => $6))`,
      [hashOf(refresh_token), grant.id, family_id, refreshable, id, REFRESH_DAYS],
    );
    return {
      access_token: key,
      token_type: 'bearer',
      expires_in: ACCESS_SECONDS,
      refresh_token,
      scope: scopes.join(' '),
      key: { id, user_id: grant.user_id, key },
    };
  }

  /**
   * Each refresh token is good once. One that is used again was stolen from somebody, and nobody can tell from whom: all
   * tokens of its family end. Only a client that lost the answer may ask again, at once, and gets the same.
   */
  async refresh(client_id: string, token: string, scope: string | undefined): Promise<Tokens> {
    const found = await this.database.row(GRANT_OF_TOKEN, [hashOf(token), client_id]);
    if (!found) throw invalidGrant();
    const tokens = await this.database.transaction(async (db) => {
      const grant = await this.grants.hold(db, found.grant_id);
      const row = grant && (await this.refreshToken(db, token));
      if (!row || row.expired) return 'refused';
      if (row.used_at === null) return this.rotate(db, grant, token, row, narrowed(scope, row.scopes));
      if (row.retried && row.answer && row.successor_used === false) return unseal<Tokens>(token, row.answer);
      await this.revokeFamily(db, row.family_id);
      return 'stolen';
    });
    return this.orRefuse(tokens);
  }

  orRefuse(tokens: Tokens | 'refused' | 'stolen'): Tokens {
    if (tokens === 'stolen') this.keys.forget();
    if (typeof tokens === 'string') throw invalidGrant();
    return tokens;
  }

  /** Under a grant that is held, so that no token of the family is being made meanwhile. */
  async revokeFamily(db: EntityManager, family_id: string): Promise<void> {
    await db.query(
      `UPDATE api_keys SET revoked_at = now() WHERE revoked_at IS NULL
       AND id IN (SELECT api_key_id FROM oauth_refresh_tokens WHERE family_id = $1)`,
      [family_id],
    );
    await db.query('DELETE FROM oauth_refresh_tokens WHERE family_id = $1', [family_id]);
  }

  private async refreshToken(db: EntityManager, token: string): Promise<RefreshRow | undefined> {
    const [row] = await db.query<RefreshRow[]>(
      `SELECT t.family_id, t.scopes, t.used_at, t.answer, t.expires_at <= now() AS expired,
              t.used_at > now() - make_interval(secs => $2) AS retried,
              (SELECT s.used_at IS NOT NULL FROM oauth_refresh_tokens s WHERE s.token_hash = t.successor_hash) AS successor_used
       FROM oauth_refresh_tokens t WHERE t.token_hash = $1`,
      [hashOf(token), RETRY_SECONDS],
    );
    return row;
  }

  private async rotate(
    db: EntityManager,
    grant: Grant,
    token: string,
    { family_id, scopes }: RefreshRow,
    narrow: string[],
  ): Promise<Tokens> {
    const tokens = await this.issue(db, grant, narrow, { family_id, refreshable: scopes });
    await db.query(
      'UPDATE oauth_refresh_tokens SET used_at = now(), successor_hash = $2, answer = $3 WHERE token_hash = $1',
      [hashOf(token), hashOf(tokens.refresh_token), seal(token, tokens)],
    );
    return tokens;
  }
}

/** A client may ask for less than it was granted, never for more. */
function narrowed(scope: string | undefined, granted: string[]): string[] {
  const asked = [...new Set((scope ?? '').split(' ').filter(Boolean))].sort();
  if (asked.length === 0) return granted;
  if (asked.some((one) => !covers(granted, one))) throw invalidScope('more than was granted');
  return asked;
}
