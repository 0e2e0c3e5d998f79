import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Raw, type Repository } from 'typeorm';
import { ApiKeysService } from '../api-keys.service';
import { covers } from '../credential';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { grantsTo } from './applications.service';
import { type Grant, GrantsService, type LockedGrant } from './grants.service';
import { OauthCode } from './oauth-code.entity';
import { invalidGrant, invalidScope } from './oauth-errors';
import { OauthRefreshToken } from './oauth-refresh-token.entity';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { commonScopes, listOfScopes } from './oauth-scopes';
import type { TokensResponse } from './oauth.dto';
import { hashOf, randomToken, sealUnder, unsealUnder } from '../sealed';

/** `revoked`: the keys of a family that was revoked because one of its tokens was used twice. */
type Outcome = TokensResponse | 'rejected' | { revoked: number[] };

interface NewCode {
  scopes: string[];
  /** The request's parameter, which is optional. */
  redirect_uri?: string;
  code_challenge?: string;
}

const VERIFIER = /^[\w.~-]{43,128}$/;

/** S256 of RFC 7636. */
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

/** The tokens from one sign-in. */
interface Family {
  family_id: string;
  /** Absent: a new family. */
  family_ends_at?: string;
  /** The scopes that its refresh tokens can grant; by default those of the access token. */
  refreshable?: string[];
}

const CODE_SECONDS = 60;
const ACCESS_SECONDS = 3600;
const REFRESH_DAYS = 90;
const RETRY_SECONDS = 10;

interface RefreshRow extends Pick<
  OauthRefreshToken,
  'family_id' | 'family_ends_at' | 'scopes' | 'used_at' | 'answer'
> {
  expired: boolean;
  retried: boolean;
  successor_used: boolean | null;
}

/** Issues codes, and the tokens for which they and refresh tokens are exchanged. */
@Injectable()
export class OauthTokensService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthCode) private readonly codes: Repository<OauthCode>,
    @InjectRepository(OauthRefreshToken) private readonly refreshTokens: Repository<OauthRefreshToken>,
    private readonly grants: GrantsService,
    private readonly keys: ApiKeysService,
    private readonly settings: Settings,
  ) {}

  async createCode(db: EntityManager, grant: Grant, code: NewCode): Promise<string> {
    const text = randomToken();
    await this.storeCode(db, grant.id, text, code);
    return text;
  }

  /** Stores a code or extends its expiry; returns false if it was used. A device gets the same code at each poll. */
  async storeCode(
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
      [hashOf(code), grant_id, scopes, redirect_uri ?? null, code_challenge ?? null, CODE_SECONDS],
    );
    return rows.length > 0;
  }

  /** A code is single-use. A second use means that it leaked, so the tokens of the first are revoked. */
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
      if (used_at !== null) return { revoked: await this.revokeFamily(db, family_id) };
      // Two concurrent exchanges are a race, not a leak: the second one only finds the code used here.
      const scopes = await this.redeem(db, code, redirect_uri, code_verifier);
      return scopes ? this.issue(db, grant, scopes, { family_id }) : 'rejected';
    });
    return this.tokensOrThrow(outcome);
  }

  /** Under a locked grant: issues tokens with those scopes that the app still has registered. */
  private async issue(
    db: EntityManager,
    grant: LockedGrant,
    scopes: string[],
    { family_id, family_ends_at, refreshable = scopes }: Family,
  ): Promise<TokensResponse | 'rejected'> {
    const permitted = commonScopes(scopes, grant.registered);
    if (permitted.length === 0) return 'rejected';
    const { id, key, created_at } = await this.keys.createIn(db, grant.user_id, {
      grant_id: grant.id,
      scopes: permitted,
      seconds: ACCESS_SECONDS,
    });
    const refresh_token = randomToken();
    await db.insert(OauthRefreshToken, {
      token_hash: hashOf(refresh_token),
      grant_id: grant.id,
      family_id,
      family_ends_at,
      scopes: refreshable,
      api_key_id: id,
      expires_at: () => `now() + make_interval(days => ${REFRESH_DAYS})`,
    });
    return {
      access_token: key,
      token_type: 'bearer',
      expires_in: ACCESS_SECONDS,
      refresh_token,
      scope: permitted.join(' '),
      key: { id, user_id: grant.user_id, key, created_at: modernTimestamp(created_at) },
    };
  }

  /**
   * A refresh token is single-use. A second use means that it was stolen, so its family is revoked, except within
   * RETRY_SECONDS: a retry gets the same response.
   */
  async refresh(client_id: string, token: string, scope: string | undefined): Promise<TokensResponse> {
    const grant_id = await this.grantOf(token, client_id);
    if (grant_id === undefined) throw invalidGrant();
    const outcome = await this.database.transaction(async (db): Promise<Outcome> => {
      const grant = await this.grants.lock(db, grant_id);
      const row = grant && (await this.refreshToken(db, token));
      if (!row || row.expired) return 'rejected';
      if (row.used_at === null) return this.rotate(db, grant, token, row, scope);
      if (row.retried && row.answer && row.successor_used === false)
        return unsealUnder<TokensResponse>(token, row.answer);
      return { revoked: await this.revokeFamily(db, row.family_id) };
    });
    return this.tokensOrThrow(outcome);
  }

  /** RFC 7009: revokes an access token, or the family of a refresh token. Other clients' tokens count as unknown. */
  async revoke(client_id: string, token: string): Promise<void> {
    const grant_id = await this.grantOf(token, client_id);
    const revoked = await this.database.transaction(async (db) => {
      if (grant_id === undefined)
        return this.keys.revokeIn(db, { ...this.keys.withText(token), grant_id: grantsTo(client_id) });
      const grant = await this.grants.lock(db, grant_id);
      const row = grant && (await this.refreshToken(db, token));
      return row ? this.revokeFamily(db, row.family_id) : [];
    });
    this.keys.forget(revoked);
  }

  private tokensOrThrow(outcome: Outcome): TokensResponse {
    if (outcome === 'rejected') throw invalidGrant();
    if ('revoked' in outcome) {
      this.keys.forget(outcome.revoked);
      throw invalidGrant();
    }
    return outcome;
  }

  /** Under a locked grant, so that no token is issued at the same time. Returns the revoked keys. */
  private async revokeFamily(db: EntityManager, family_id: string): Promise<number[]> {
    const revoked = await this.keys.revokeIn(db, {
      id: Raw(
        (column) => `${column} IN (SELECT api_key_id FROM oauth_refresh_tokens WHERE family_id = :family_id)`,
        { family_id },
      ),
    });
    await db.delete(OauthRefreshToken, { family_id });
    return revoked;
  }

  /** Marks the code as used and returns its scopes, or undefined if it is not valid with these parameters. */
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

  private async grantOf(token: string, client_id: string): Promise<number | undefined> {
    const row = await this.refreshTokens.findOne({
      where: { token_hash: hashOf(token), grant_id: grantsTo(client_id) },
      select: { token_hash: true, grant_id: true },
    });
    return row?.grant_id;
  }

  private refreshToken(db: EntityManager, token: string): Promise<RefreshRow | undefined> {
    return db
      .createQueryBuilder(OauthRefreshToken, 't')
      .leftJoin(OauthRefreshToken, 's', 's.token_hash = t.successor_hash')
      .select(
        ['family_id', 'family_ends_at', 'scopes', 'used_at', 'answer'].map((name) => `t.${name} AS ${name}`),
      )
      .addSelect('least(t.expires_at, t.family_ends_at) <= now()', 'expired')
      .addSelect('t.used_at > now() - make_interval(secs => :retry)', 'retried')
      .addSelect('CASE WHEN s.token_hash IS NOT NULL THEN s.used_at IS NOT NULL END', 'successor_used')
      .where({ token_hash: hashOf(token) })
      .setParameters({ retry: RETRY_SECONDS })
      .getRawOne<RefreshRow>();
  }

  private async rotate(
    db: EntityManager,
    grant: LockedGrant,
    token: string,
    { family_id, family_ends_at, scopes }: RefreshRow,
    scope: string | undefined,
  ): Promise<TokensResponse | 'rejected'> {
    const asked = listOfScopes(scope, { lenient: this.settings.LENIENT_CLIENTS });
    const permitted = commonScopes(scopes, grant.registered);
    if (!asked.every((one) => covers(permitted, one))) throw invalidScope('more than the granted scopes');
    const family = { family_id, family_ends_at, refreshable: scopes };
    const tokens = await this.issue(db, grant, asked.length > 0 ? asked : permitted, family);
    if (tokens === 'rejected') return tokens;
    await db.update(
      OauthRefreshToken,
      { token_hash: hashOf(token) },
      {
        used_at: () => 'now()',
        successor_hash: hashOf(tokens.refresh_token),
        answer: sealUnder(token, tokens),
      },
    );
    return tokens;
  }
}
