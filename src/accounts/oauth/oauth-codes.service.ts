import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { type Grant, GrantsService } from './grants.service';
import { invalidGrant } from './oauth-errors';
import { OauthTokensService, type Tokens } from './oauth-tokens.service';
import { hashOf, randomToken } from '../web/sealed';

const LIVES = 60;

export interface NewCode {
  scopes: string[];
  /** As the client named it, if it did. */
  redirect_uri?: string;
  code_challenge?: string;
}

const CODE = statement<{ grant_id: number; family_id: string; used_at: string | null }>(
  'oauth_code',
  `SELECT c.grant_id, c.family_id, c.used_at FROM oauth_codes c JOIN oauth_grants g ON g.id = c.grant_id
   WHERE c.code_hash = $1 AND g.client_id = $2`,
);

/** S256 of RFC 7636. */
export const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

@Injectable()
export class OauthCodesService {
  constructor(
    private readonly database: Database,
    private readonly grants: GrantsService,
    private readonly tokens: OauthTokensService,
  ) {}

  async make(db: EntityManager, grant: Grant, code: NewCode): Promise<string> {
    const text = randomToken();
    await this.put(db, grant.id, text, code);
    return text;
  }

  /** A device gets the same code however often it asks, until it is used. False: it is used. */
  async put(
    db: EntityManager,
    grant_id: number,
    code: string,
    { scopes, redirect_uri, code_challenge }: NewCode,
  ): Promise<boolean> {
    const rows: unknown[] = await db.query(
      `INSERT INTO oauth_codes AS old (code_hash, grant_id, scopes, redirect_uri, code_challenge, expires_at, family_id)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6), gen_random_uuid())
       ON CONFLICT (code_hash) DO UPDATE SET expires_at = excluded.expires_at WHERE old.used_at IS NULL
       RETURNING code_hash`,
      [hashOf(code), grant_id, scopes, redirect_uri ?? null, code_challenge ?? null, LIVES],
    );
    return rows.length > 0;
  }

  /** Once. A code that comes again was seen by somebody else: what it was exchanged for ends. */
  async exchange(
    client_id: string,
    code: string,
    { redirect_uri, code_verifier }: { redirect_uri?: string; code_verifier?: string },
  ): Promise<Tokens> {
    const found = await this.database.row(CODE, [hashOf(code), client_id]);
    if (!found) throw invalidGrant();
    const tokens = await this.database.transaction(async (db) => {
      const grant = await this.grants.hold(db, found.grant_id);
      if (!grant) return 'refused';
      if (found.used_at !== null) {
        await this.tokens.revokeFamily(db, found.family_id);
        return 'stolen';
      }
      // Of two exchanges at the same instant the second finds it used by now: that is a race and no theft.
      const scopes = await this.use(db, code, redirect_uri, code_verifier);
      return scopes ? this.tokens.issue(db, grant, scopes, { family_id: found.family_id }) : 'refused';
    });
    return this.tokens.orRefuse(tokens);
  }

  private async use(
    db: EntityManager,
    code: string,
    redirect_uri?: string,
    verifier?: string,
  ): Promise<string[] | undefined> {
    // A code that was sent nowhere has no address to compare.
    const [used] = await db.query<{ scopes: string[] }[]>(
      `WITH used AS (
         UPDATE oauth_codes SET used_at = now()
         WHERE code_hash = $1 AND used_at IS NULL AND expires_at > now()
           AND (redirect_uri IS NULL OR redirect_uri = $2)
           AND code_challenge IS NOT DISTINCT FROM $3
         RETURNING scopes)
       SELECT scopes FROM used`,
      [hashOf(code), redirect_uri ?? null, verifier === undefined ? null : challengeOf(verifier)],
    );
    return used?.scopes;
  }
}
