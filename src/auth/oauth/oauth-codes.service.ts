import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, IsNull, Raw, type Repository } from 'typeorm';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { randomToken, sha256 } from '../accounts/encryption';
import { grantsTo } from './applications.service';
import type { Grant } from './grants.service';
import { OauthCode } from './oauth-code.entity';

interface NewCode {
  scopes: string[];
  /** Absent if the authorization request omitted it. */
  redirect_uri?: string;
  code_challenge?: string;
}

/** What an app sends with a code. */
export interface CodeProof {
  redirect_uri?: string;
  code_verifier?: string;
}

const VERIFIER = /^[\w.~-]{43,128}$/;

/** Computes an S256 code challenge (RFC 7636). */
const createChallenge = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

const CODE_SECONDS = 60;
// The limit of one grant, because a user can sign in as often as the rate limits permit.
const MAX_CODES = 100;

const STORE_CODE = statement<{ code_hash: Buffer }>(
  'store_oauth_code',
  `INSERT INTO oauth_codes AS old (code_hash, grant_id, scopes, redirect_uri, code_challenge, expires_at, family_id)
   VALUES ($code_hash, $grant_id, $scopes, $redirect_uri, $code_challenge,
     now() + make_interval(secs => ${CODE_SECONDS}), gen_random_uuid())
   ON CONFLICT (code_hash) DO UPDATE SET expires_at = excluded.expires_at WHERE old.used_at IS NULL
   RETURNING code_hash`,
);

const DELETE_OLDEST_CODES = statement(
  'delete_oldest_oauth_codes',
  `DELETE FROM oauth_codes WHERE code_hash IN (
    SELECT code_hash FROM oauth_codes WHERE grant_id = $grant_id ORDER BY expires_at DESC OFFSET ${MAX_CODES} LIMIT 1000)`,
);

/** Authorization codes, which an app exchanges once for tokens. */
@Injectable()
export class OauthCodesService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthCode) private readonly codes: Repository<OauthCode>,
  ) {}

  async create(db: EntityManager, grant: Grant, code: NewCode): Promise<string> {
    const text = randomToken();
    await this.store(db, grant.id, text, code);
    await this.database.rows(DELETE_OLDEST_CODES, { grant_id: grant.id }, db);
    return text;
  }

  /**
   * Stores a code or extends its expiry; returns false if it was used. Each poll of a device gets the same
   * code.
   */
  async store(
    db: EntityManager,
    grant_id: number,
    code: string,
    { scopes, redirect_uri, code_challenge }: NewCode,
  ): Promise<boolean> {
    const values = {
      code_hash: sha256(code),
      grant_id,
      scopes,
      redirect_uri: redirect_uri ?? null,
      code_challenge: code_challenge ?? null,
    };
    return (await this.database.row(STORE_CODE, values, db)) !== undefined;
  }

  /** A code of the app, used or not; null if there is none, or if the verifier is malformed. */
  async find(client_id: string, code: string, { code_verifier }: CodeProof): Promise<OauthCode | null> {
    if (code_verifier !== undefined && !VERIFIER.test(code_verifier)) return null;
    return this.codes.findOneBy({ code_hash: sha256(code), grant_id: grantsTo(client_id) });
  }

  /** Uses up the code; returns false if it was used, has expired, or belongs to another request. */
  async use(
    db: EntityManager,
    code: OauthCode,
    { redirect_uri, code_verifier }: CodeProof,
  ): Promise<boolean> {
    const isOwn =
      (code.redirect_uri ?? redirect_uri) === redirect_uri &&
      code.code_challenge === (code_verifier === undefined ? null : createChallenge(code_verifier));
    if (!isOwn) return false;
    const unused = {
      code_hash: code.code_hash,
      used_at: IsNull(),
      expires_at: Raw((column) => `${column} > now()`),
    };
    return (await db.update(OauthCode, unused, { used_at: () => 'now()' })).affected === 1;
  }
}
