import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { EntityManager } from 'typeorm';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { read } from '../platform/database/statement';
import { OwnAddress } from '../platform/http/own-address';
import { User } from './accounts/user.entity';
import { isLive } from './api-key-lookup';
import type { Credential } from './credential';
import { invalidToken, tokenExpired } from './errors';
import { LEEWAY, SigningKeysService } from './signing-keys.service';

const ALGORITHM = 'EdDSA';
const TYPE = 'JWT';
const MOST_GENERATIONS = 2 ** 31 - 1;

// A JWT ends with its API key, or when its user revokes all JWTs with a new generation.
export const LIVE_USER = read(
  'live_user_of_token',
  `SELECT u.id FROM users u
   WHERE u.id = $1 AND u.token_generation = $3 AND ($2::bigint IS NULL OR EXISTS (
     SELECT FROM api_keys k WHERE k.id = $2 AND k.user_id = u.id AND ${isLive('k')}))`,
);

interface TokenOrder {
  user_id: number;
  game_id: number;
  scopes: readonly string[];
  /** The key that the token depends on; null: an operator's command. */
  api_key_id: number | null;
  /** Seconds. */
  lifetime?: number;
}

/** Issues and verifies JWTs, which act for a user in a game. */
@Injectable()
export class TokensService {
  constructor(
    private readonly database: Database,
    private readonly signingKeys: SigningKeysService,
    private readonly settings: Settings,
    private readonly own: OwnAddress,
    private readonly clock: Clock,
    @InjectEntityManager() private readonly db: EntityManager,
  ) {}

  get issuer(): string {
    return this.settings.JWT_ISSUER ?? this.own.url;
  }

  get audience(): string {
    return this.settings.JWT_AUDIENCE ?? this.issuer;
  }

  async issue(order: TokenOrder): Promise<{ key: string; expires_at: number }> {
    const lifetime = order.lifetime ?? this.settings.JWT_LIFETIME;
    const { kid, privateKey } = await this.signingKeys.signer(lifetime);
    const generation = await this.generationOf(order.user_id);
    const iat = Math.floor(this.clock.now() / 1000);
    const expires_at = iat + lifetime;
    const key = await new SignJWT({
      scope: order.scopes.toSorted().join(' '),
      game_id: order.game_id,
      ...(order.api_key_id === null ? {} : { api_key_id: order.api_key_id }),
      ...(generation === 0 ? {} : { generation }),
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid })
      .setIssuer(this.issuer)
      .setAudience(this.audience)
      .setSubject(String(order.user_id))
      .setJti(randomUUID())
      .setIssuedAt(iat)
      .setExpirationTime(expires_at)
      .sign(privateKey());
    return { key, expires_at };
  }

  async credentialOf(token: string): Promise<Credential> {
    const key = await this.signingKeys.verifier(kidOf(token));
    if (!key) throw invalidToken();
    const claims = claimsOf(await this.payloadOf(token, key));
    if (!claims) throw invalidToken();
    const { generation, ...credential } = claims;
    const { user_id, api_key_id } = credential;
    if (!(await this.database.row(LIVE_USER, [user_id, api_key_id, generation]))) throw invalidToken();
    return credential;
  }

  private async generationOf(user_id: number): Promise<number> {
    const select = { id: true, token_generation: true };
    const where = { id: user_id };
    const user = await this.db.findOne(User, { where, select });
    return user?.token_generation ?? 0;
  }

  private async payloadOf(token: string, key: Parameters<typeof jwtVerify>[1]): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: this.issuer,
        audience: this.audience,
        clockTolerance: LEEWAY,
        currentDate: new Date(this.clock.now()),
        requiredClaims: ['exp', 'iat', 'sub', 'jti', 'scope'],
      });
      return payload;
    } catch (error) {
      throw error instanceof errors.JWTExpired ? tokenExpired() : invalidToken();
    }
  }
}

/** The `kid` of the header, which may contain nothing else: no key, no URL of a key, no other algorithm. */
function kidOf(token: string): string {
  let header: Record<string, unknown>;
  try {
    header = decodeProtectedHeader(token);
  } catch {
    throw invalidToken();
  }
  const { alg, typ, kid, ...others } = header;
  if (alg !== ALGORITHM || typ !== TYPE || Object.keys(others).length > 0 || !isThumbprint(kid))
    throw invalidToken();
  return kid;
}

const isThumbprint = (kid: unknown): kid is string => typeof kid === 'string' && /^[\w-]{43}$/.test(kid);

function claimsOf({
  sub,
  exp,
  iat,
  scope,
  api_key_id = null,
  game_id,
  generation = 0,
}: JWTPayload): (Credential & { generation: number }) | undefined {
  if (typeof sub !== 'string' || !/^[1-9]\d{0,15}$/.test(sub)) return undefined;
  if (!Number.isInteger(exp) || !Number.isInteger(iat)) return undefined;
  if (typeof scope !== 'string' || (api_key_id !== null && !Number.isSafeInteger(api_key_id)))
    return undefined;
  if (!Number.isInteger(generation) || (generation as number) > MOST_GENERATIONS) return undefined;
  const scopes = [...new Set(scope.split(' ').filter((one) => one !== ''))].sort();
  return {
    type: 'jwt',
    user_id: Number(sub),
    scopes,
    api_key_id: api_key_id as number | null,
    game_id: Number.isSafeInteger(game_id) ? (game_id as number) : undefined,
    generation: generation as number,
    expires_at: exp!,
  };
}
