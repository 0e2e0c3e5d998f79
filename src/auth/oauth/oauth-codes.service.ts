import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, Repository } from 'typeorm';
import { Database } from '../../platform/database/database';
import { grantsTo } from './applications.service';
import { type Grant, GrantsService } from './grants.service';
import { OauthCode } from './oauth-code.entity';
import { invalidGrant } from './oauth-errors';
import { OauthTokensService, type Outcome } from './oauth-tokens.service';
import type { TokensResponse } from './oauth.dto';
import { hashOf, randomToken } from '../sealed';

// Seconds.
const LIFETIME = 60;

interface NewCode {
  scopes: string[];
  /** The request's parameter, which is optional. */
  redirect_uri?: string;
  code_challenge?: string;
}

const VERIFIER = /^[\w.~-]{43,128}$/;

/** S256 of RFC 7636. */
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

@Injectable()
export class OauthCodesService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthCode) private readonly codes: Repository<OauthCode>,
    private readonly grants: GrantsService,
    private readonly tokens: OauthTokensService,
  ) {}

  async make(db: EntityManager, grant: Grant, code: NewCode): Promise<string> {
    const text = randomToken();
    await this.store(db, grant.id, text, code);
    return text;
  }

  /** Stores a code or extends its expiry; false: it was used. A device gets the same code at each poll. */
  async store(
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
      [hashOf(code), grant_id, scopes, redirect_uri ?? null, code_challenge ?? null, LIFETIME],
    );
    return rows.length > 0;
  }

  /** A code is valid once. A second use means that it leaked: the tokens of the first are revoked. */
  async exchange(
    client_id: string,
    code: string,
    { redirect_uri, code_verifier }: { redirect_uri?: string; code_verifier?: string },
  ): Promise<TokensResponse> {
    if (code_verifier !== undefined && !VERIFIER.test(code_verifier)) throw invalidGrant();
    const found = await this.codes.findOneBy({ code_hash: hashOf(code), grant_id: grantsTo(client_id) });
    if (!found) throw invalidGrant();
    const { grant_id, family_id, used_at } = found;
    const outcome = await this.database.transaction(async (db): Promise<Outcome> => {
      const grant = await this.grants.lock(db, grant_id);
      if (!grant) return 'rejected';
      if (used_at !== null) return { revoked: await this.tokens.revokeFamily(db, family_id) };
      // Two concurrent exchanges are a race and no leak: the second finds the code used only here.
      const scopes = await this.redeem(db, code, redirect_uri, code_verifier);
      return scopes ? this.tokens.issue(db, grant, scopes, { family_id }) : 'rejected';
    });
    return this.tokens.tokensOrThrow(outcome);
  }

  /** Marks the code as used and returns its scopes; undefined: it is not valid with these parameters. */
  private async redeem(
    db: EntityManager,
    code: string,
    redirect_uri: string | undefined,
    verifier: string | undefined,
  ): Promise<string[] | undefined> {
    const { raw } = await db
      .createQueryBuilder()
      .update(OauthCode)
      .set({ used_at: () => 'now()' })
      .where('code_hash = :hash AND used_at IS NULL AND expires_at > now()', { hash: hashOf(code) })
      .andWhere('(redirect_uri IS NULL OR redirect_uri = :redirect_uri)', {
        redirect_uri: redirect_uri ?? null,
      })
      .andWhere('code_challenge IS NOT DISTINCT FROM :challenge', {
        challenge: verifier === undefined ? null : challengeOf(verifier),
      })
      .returning('scopes')
      .execute();
    return (raw as { scopes: string[] }[])[0]?.scopes;
  }
}
