import { type KeyObject, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Repository } from 'typeorm';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { read } from '../../platform/database/statement';
import { ServiceUrl } from '../../platform/server/service-url';
import { User } from '../accounts/user.entity';
import { isLive } from '../keys/api-key-lookup';
import type { Credential } from '../access/credential';
import { invalidToken, tokenExpired } from '../access/errors';
import { LEEWAY_SECONDS, SigningKeysService } from './signing-keys.service';

export const ALGORITHM = 'EdDSA';
const TOKEN_TYPE = 'JWT';
const MOST_GENERATIONS = 2 ** 31 - 1;

// A JWT is revoked with its API key, or by a new generation, with which its user revokes all JWTs.
const LIVE_USER = read(
  'live_user_of_token',
  `SELECT u.id FROM users u
   WHERE u.id = $user_id AND u.token_generation = $generation AND ($api_key_id::bigint IS NULL OR EXISTS (
     SELECT FROM api_keys k WHERE k.id = $api_key_id AND k.user_id = u.id AND ${isLive('k')}))`,
);

type TokenCredential = Credential & { expires_at: number };

interface TokenOrder {
  user_id: number;
  game_id: number;
  scopes: readonly string[];
  /** The API key that the JWT depends on; null if an operator issued it. */
  api_key_id: number | null;
  /** By default JWT_LIFETIME. */
  lifetime_seconds?: number;
  /** In seconds since 1970: the expiry of the API key, with which the JWT expires too. */
  latest_expiry?: number;
  /** Defaults to this service. */
  issuer?: string;
}

@Injectable()
export class TokensService {
  constructor(
    private readonly database: Database,
    private readonly signingKeys: SigningKeysService,
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
    private readonly clock: Clock,
    @InjectRepository(User) private readonly users: Repository<User>,
  ) {}

  get issuer(): string {
    return this.settings.JWT_ISSUER ?? this.service.url;
  }

  get audience(): string {
    return this.settings.JWT_AUDIENCE ?? this.issuer;
  }

  async issue(order: TokenOrder): Promise<{ key: string; expires_at: number }> {
    const lifetime_seconds = order.lifetime_seconds ?? this.settings.JWT_LIFETIME;
    const { kid, privateKey } = await this.signingKeys.signer(lifetime_seconds);
    const select = { id: true, token_generation: true };
    const user = await this.users.findOne({ where: { id: order.user_id }, select });
    const generation = user?.token_generation ?? 0;
    const iat = Math.floor(this.clock.now() / 1000);
    const expires_at = Math.min(iat + lifetime_seconds, order.latest_expiry ?? Infinity);
    const key = await new SignJWT({
      scope: order.scopes.toSorted().join(' '),
      game_id: order.game_id,
      ...(order.api_key_id === null ? {} : { api_key_id: order.api_key_id }),
      ...(generation === 0 ? {} : { generation }),
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: TOKEN_TYPE, kid })
      .setIssuer(order.issuer ?? this.issuer)
      .setAudience(this.audience)
      .setSubject(String(order.user_id))
      .setJti(randomUUID())
      .setIssuedAt(iat)
      .setExpirationTime(expires_at)
      .sign(privateKey());
    return { key, expires_at };
  }

  async verifyToken(token: string): Promise<TokenCredential> {
    const { generation, ...credential } = parseClaims(await this.verify(token));
    const { user_id, api_key_id } = credential;
    if (!(await this.database.row(LIVE_USER, { user_id, api_key_id, generation }))) throw invalidToken();
    return credential;
  }

  private async verify(token: string): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, (header) => this.findKey(header), {
        algorithms: [ALGORITHM],
        issuer: this.issuer,
        audience: this.audience,
        clockTolerance: LEEWAY_SECONDS,
        currentDate: new Date(this.clock.now()),
        requiredClaims: ['exp', 'iat', 'sub', 'jti', 'scope'],
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw tokenExpired();
      throw error instanceof errors.JOSEError ? invalidToken() : error;
    }
  }

  /**
   * Finds the signing key of a token. Rejects a header with a different algorithm or with other fields, such as a
   * key or its URL.
   */
  private async findKey({ alg, typ, kid, ...others }: JWTHeaderParameters): Promise<KeyObject> {
    const isOwn = alg === ALGORITHM && typ === TOKEN_TYPE && Object.keys(others).length === 0;
    const key = isOwn && isThumbprint(kid) ? await this.signingKeys.verifier(kid) : undefined;
    if (!key) throw invalidToken();
    return key;
  }
}

const isThumbprint = (kid: unknown): kid is string => typeof kid === 'string' && /^[\w-]{43}$/.test(kid);

function parseClaims({
  sub,
  exp,
  iat,
  scope,
  api_key_id = null,
  game_id,
  generation = 0,
}: JWTPayload): TokenCredential & { generation: number } {
  const isValid =
    typeof sub === 'string' &&
    /^[1-9]\d{0,15}$/.test(sub) &&
    isInteger(exp) &&
    isInteger(iat) &&
    typeof scope === 'string' &&
    (api_key_id === null || isInteger(api_key_id)) &&
    isInteger(generation) &&
    generation <= MOST_GENERATIONS;
  if (!isValid) throw invalidToken();
  const scopes = [...new Set(scope.split(' ').filter((one) => one !== ''))].sort();
  return {
    type: 'jwt',
    user_id: Number(sub),
    scopes,
    api_key_id,
    game_id: isInteger(game_id) ? game_id : undefined,
    generation,
    expires_at: exp,
  };
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
