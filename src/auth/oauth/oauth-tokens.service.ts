import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, type FindOptionsWhere, Raw, type Repository } from 'typeorm';
import { ApiKeysService } from '../keys/api-keys.service';
import { covers } from '../access/credential';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { grantsTo } from './applications.service';
import { GrantsService } from './grants.service';
import type { OauthGrant } from '../accounts/oauth-grant.entity';
import { type CodeProof, OauthCodesService } from './oauth-codes.service';
import { invalidGrant, invalidScope } from './oauth-errors';
import { OauthRefreshToken } from './oauth-refresh-token.entity';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { permittedScopes, listOfScopes } from './oauth-scopes';
import type { TokensResponse } from './oauth.dto';
import { sha256, randomToken, encryptWithToken, decryptWithToken } from '../accounts/encryption';

/** `revoked`: the keys of a family that was revoked because one of its tokens was used twice. */
type Outcome = TokensResponse | { revoked: number[] };

/** The tokens from one sign-in. */
interface Family {
  /** Part of each refresh token, so that a reused one is recognized after its row was deleted. */
  family_id: string;
  /** Absent: a new family. */
  family_ends_at?: string;
  /** The scopes that its refresh tokens can grant; by default those of the access token. */
  refreshable?: string[];
}

const ACCESS_SECONDS = 3600;
const REFRESH_DAYS = 90;
const RETRY_SECONDS = 10;

// Limits of one grant, because a user can sign in and refresh as often as the rate limits permit.
const MAX_SIGN_INS = 1000;
const MAX_USED = 100;

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Also deletes the access tokens that were issued with the refresh tokens. */
const DELETE_OLDEST_TOKENS = statement(
  'delete_oldest_oauth_tokens',
  `WITH oldest AS (
    DELETE FROM oauth_refresh_tokens WHERE token_hash IN (
      SELECT token_hash
      FROM (SELECT token_hash, used_at, row_number() OVER (PARTITION BY used_at IS NULL ORDER BY expires_at DESC) AS rank
            FROM oauth_refresh_tokens WHERE grant_id = $grant_id) t
      WHERE rank > CASE WHEN used_at IS NULL THEN ${MAX_SIGN_INS} ELSE ${MAX_USED} END LIMIT 1000)
    RETURNING api_key_id)
  DELETE FROM api_keys WHERE id IN (SELECT api_key_id FROM oldest)`,
);

const DELETE_OLDEST_KEYS = statement(
  'delete_oldest_oauth_keys',
  `DELETE FROM api_keys WHERE id IN (
    SELECT id FROM api_keys WHERE grant_id = $grant_id AND family_id IS NOT NULL ORDER BY id DESC OFFSET ${MAX_SIGN_INS} LIMIT 1000)`,
);

interface RefreshRow extends OauthRefreshToken {
  expired: boolean;
  /** Whether the response may be sent again, because the client retries and never used the new token. */
  repeatable: boolean;
}

/** Exchanges codes and refresh tokens for new tokens. */
@Injectable()
export class OauthTokensService {
  constructor(
    private readonly database: Database,
    private readonly codes: OauthCodesService,
    @InjectRepository(OauthRefreshToken) private readonly refreshTokens: Repository<OauthRefreshToken>,
    private readonly grants: GrantsService,
    private readonly keys: ApiKeysService,
    private readonly settings: Settings,
  ) {}

  /** A code is single-use. A second use means that it leaked, so the tokens of the first are revoked. */
  async exchange(client_id: string, code: string, proof: CodeProof): Promise<TokensResponse> {
    const found = await this.codes.find(client_id, code, proof);
    if (!found) throw invalidGrant();
    const { grant_id, family_id, used_at, scopes } = found;
    return this.issueTokens(grant_id, async (db) => {
      const grant = await this.grants.lock(db, grant_id);
      if (!grant) throw invalidGrant();
      if (used_at !== null) return { revoked: await this.revokeFamily(db, found) };
      // Two concurrent exchanges are a race, not a leak: the second one only finds the code used here.
      if (!(await this.codes.use(db, found, proof))) throw invalidGrant();
      return this.issue(db, grant, scopes, { family_id });
    });
  }

  /** Issues tokens with the scopes that the app still has registered. The grant must be locked. */
  private async issue(
    db: EntityManager,
    grant: OauthGrant,
    scopes: string[],
    { family_id, family_ends_at, refreshable = scopes }: Family,
  ): Promise<TokensResponse> {
    const permitted = permittedScopes(scopes, grant.application!.scopes);
    if (permitted.length === 0) throw invalidGrant();
    const of_grant = { grant_id: grant.id, scopes: permitted };
    const access = await this.keys.createIn(db, grant.user_id, { ...of_grant, seconds: ACCESS_SECONDS });
    // Only a sign-in creates a lasting key, because a client that refreshes needs no other key.
    const isSignIn = family_ends_at === undefined;
    const lasting =
      isSignIn && this.settings.LENIENT_CLIENTS
        ? await this.keys.createIn(db, grant.user_id, { ...of_grant, family_id })
        : access;
    const refresh_token = `${family_id}.${randomToken()}`;
    await db.insert(OauthRefreshToken, {
      token_hash: sha256(refresh_token),
      grant_id: grant.id,
      family_id,
      family_ends_at,
      scopes: refreshable,
      api_key_id: access.id,
      expires_at: () => `now() + make_interval(days => ${REFRESH_DAYS})`,
    });
    await this.database.rows(DELETE_OLDEST_TOKENS, { grant_id: grant.id }, db);
    if (lasting !== access) await this.database.rows(DELETE_OLDEST_KEYS, { grant_id: grant.id }, db);
    const { id, key, created_at } = lasting;
    return {
      access_token: access.key,
      token_type: 'bearer',
      expires_in: ACCESS_SECONDS,
      refresh_token,
      scope: permitted.join(' '),
      key: { id, user_id: grant.user_id, key, created_at: modernTimestamp(created_at) },
    };
  }

  /**
   * A refresh token is single-use. A second use means that it was stolen, so its family is revoked, except
   * within RETRY_SECONDS: a retry gets the same response.
   */
  async refresh(client_id: string, token: string, scope: string | undefined): Promise<TokensResponse> {
    const family = await this.findFamily(token, client_id);
    if (!family) throw invalidGrant();
    return this.issueTokens(family.grant_id, async (db) => {
      const grant = await this.grants.lock(db, family.grant_id);
      const row = grant && (await this.refreshToken(db, token));
      if (!grant || row?.expired) throw invalidGrant();
      if (row?.used_at === null) return this.rotate(db, grant, row, token, scope);
      if (row?.repeatable && row.response) return decryptWithToken<TokensResponse>(token, row.response)!;
      return { revoked: await this.revokeFamily(db, family) };
    });
  }

  /**
   * RFC 7009: revokes an access token, or a refresh token's family. Other clients' tokens count as unknown.
   */
  async revoke(client_id: string, token: string): Promise<void> {
    const family = await this.findFamily(token, client_id);
    const revoked = await this.database.transaction(
      async (db) => {
        if (!family)
          return this.keys.revokeIn(db, { ...this.keys.withText(token), grant_id: grantsTo(client_id) });
        return (await this.grants.lock(db, family.grant_id)) ? this.revokeFamily(db, family) : [];
      },
      { concurrencyKey: family ? `grant ${family.grant_id}` : undefined },
    );
    this.keys.forget(revoked);
  }

  /** Returns the tokens that the transaction issues. A revocation is committed, but fails the request. */
  private async issueTokens(
    grant_id: number,
    work: (db: EntityManager) => Promise<Outcome>,
  ): Promise<TokensResponse> {
    const outcome = await this.database.transaction(work, { concurrencyKey: `grant ${grant_id}` });
    if (!('revoked' in outcome)) return outcome;
    this.keys.forget(outcome.revoked);
    throw invalidGrant();
  }

  /** Returns the revoked keys. The grant must be locked, so that no token is issued at the same time. */
  private async revokeFamily(
    db: EntityManager,
    { grant_id, family_id }: Pick<OauthRefreshToken, 'grant_id' | 'family_id'>,
  ): Promise<number[]> {
    const lasting = await this.keys.revokeIn(db, { grant_id, family_id });
    const revoked = await this.keys.revokeIn(db, {
      id: Raw(
        (column) => `${column} IN (SELECT api_key_id FROM oauth_refresh_tokens WHERE family_id = :family_id)`,
        { family_id },
      ),
    });
    await db.delete(OauthRefreshToken, { family_id });
    return [...lasting, ...revoked];
  }

  private async findFamily(token: string, client_id: string) {
    const find = (one: FindOptionsWhere<OauthRefreshToken>) =>
      this.refreshTokens.findOne({
        where: { ...one, grant_id: grantsTo(client_id) },
        select: { token_hash: true, grant_id: true, family_id: true },
      });
    const found = await find({ token_hash: sha256(token) });
    const family_id = token.split('.', 1)[0]!;
    return found ?? (UUID.test(family_id) ? find({ family_id }) : null);
  }

  private refreshToken(db: EntityManager, token: string): Promise<RefreshRow | undefined> {
    return db
      .createQueryBuilder(OauthRefreshToken, 't')
      .leftJoin(OauthRefreshToken, 's', 's.token_hash = t.successor_hash AND s.used_at IS NULL')
      .select([
        't.*',
        't.response AS response',
        'least(t.expires_at, t.family_ends_at) <= now() AS expired',
        `s.token_hash IS NOT NULL AND t.used_at > now() - make_interval(secs => ${RETRY_SECONDS}) AS repeatable`,
      ])
      .where({ token_hash: sha256(token) })
      .getRawOne();
  }

  private async rotate(
    db: EntityManager,
    grant: OauthGrant,
    { token_hash, family_id, family_ends_at, scopes }: RefreshRow,
    token: string,
    scope: string | undefined,
  ): Promise<TokensResponse> {
    const requested = listOfScopes(scope, { lenient: this.settings.LENIENT_CLIENTS });
    const permitted = permittedScopes(scopes, grant.application!.scopes);
    if (!requested.every((one) => covers(permitted, one))) throw invalidScope('more than the granted scopes');
    const family = { family_id, family_ends_at, refreshable: scopes };
    const tokens = await this.issue(db, grant, requested.length > 0 ? requested : permitted, family);
    const replaced = {
      used_at: () => 'now()',
      successor_hash: sha256(tokens.refresh_token),
      response: encryptWithToken(token, tokens),
    };
    await db.update(OauthRefreshToken, { token_hash }, replaced);
    return tokens;
  }
}
