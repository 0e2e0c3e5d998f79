import { Injectable } from '@nestjs/common';
import { AuthModuleOptions, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import passport, { Strategy } from 'passport';
import { lookupCache } from '../../platform/database/lookup-cache';
import { Clock } from '../../platform/config/clock';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import { ApiKeyLookup } from '../keys/api-key-lookup';
import { type ApiKeyUse, ApiKeyUses } from '../keys/api-key-uses';
import type { Credential, UnverifiedCredential } from '../access/credential';
import { authenticationRequired, invalidKey, noLongerValid } from '../access/errors';
import { ApiError } from '../../platform/errors/api-error';
import { ROOT_SCOPES } from '../access/scopes';
import { LEEWAY } from '../jwt/signing-keys.service';
import { TokensService } from '../jwt/tokens.service';

// With the duration of a request, a revocation on another replica takes effect within a second.
const TTL_MS = 700;
const MAX_CACHED = 50_000;
// Longer than the TTL and the longest lookup: then the cache contains nothing that was read before the revocation.
const REVOKED_TTL_MS = 5000;
const MAX_REVOKED = 10_000;

/** A verified credential. */
interface CachedCredential {
  credential: Credential;
  use?: ApiKeyUse;
}

type Verified = CachedCredential & { lives_ms: number };

/** Passport's part of it. Unlike passport-http-bearer, it reads no token in the query, which would end up in logs. */
class RequestStrategy extends Strategy {
  constructor(
    private readonly verify: (req: Request, done: (error: unknown, user: Credential) => void) => void,
  ) {
    super();
  }

  override authenticate(req: Request): void {
    this.verify(req, (error, user) => (error ? this.error(error) : this.success(user)));
  }
}

@Injectable()
export class BearerStrategy extends PassportStrategy(RequestStrategy, 'bearer') {
  // Rejected credentials aren't cached: an attacker could evict valid ones.
  private readonly caches;
  /** The IDs of API keys that this process revoked. */
  private readonly revoked;
  private readonly lookups = { cached: 0, verified: 0, rejected: 0, failed: 0 };

  constructor(
    private readonly keys: ApiKeyLookup,
    private readonly tokens: TokensService,
    private readonly uses: ApiKeyUses,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    { defaultStrategy }: AuthModuleOptions,
  ) {
    super();
    // Passport keeps strategies by name for the whole process, which may contain several apps, as in tests.
    passport.use(defaultStrategy as string, this as passport.Strategy);
    const cache = (look: (text: string, stale?: CachedCredential) => Promise<Verified>) =>
      lookupCache<CachedCredential>(clock, { max: MAX_CACHED, ttl_ms: TTL_MS }, (text, _, stale) =>
        this.counted(look(text, stale)),
      );
    this.caches = {
      key: cache((text, stale) => this.lookUpKey(text, stale)),
      jwt: cache((text) => this.lookUpToken(text)),
    };
    this.revoked = new LRUCache<number, true>({
      max: MAX_REVOKED,
      ttl: REVOKED_TTL_MS,
      ttlResolution: 0,
      perf: { now: () => clock.monotonic() },
    });
    metrics.totals('gamewharf_credential_lookups_total', 'Credential lookups by result', ['result'], () =>
      Object.entries(this.lookups).map(([result, total]) => [{ result }, total]),
    );
  }

  /** Called by Passport. */
  async validate(req: Request): Promise<Credential> {
    const unverified = req.unverifiedCredential;
    if (!unverified) throw authenticationRequired();
    if (unverified instanceof ApiError) throw unverified;
    const { credential, use } = this.cached(unverified) ?? (await this.lookUp(unverified));
    if (this.revoked.has(credential.api_key_id ?? NaN)) throw noLongerValid(unverified);
    if (use) this.uses.add(use, req);
    return credential;
  }

  /** Whether the credential was valid recently; does not authenticate it. */
  isKnown(unverified: UnverifiedCredential | ApiError | undefined): boolean {
    if (!unverified || unverified instanceof ApiError) return false;
    return this.caches[unverified.type].peek(unverified.text, { allowStale: true }) !== undefined;
  }

  /** After these API keys were revoked: rejects them and their JWTs, including those that are being looked up. */
  forget(api_key_ids: readonly number[]): void {
    if (api_key_ids.length > MAX_REVOKED) this.forgetAll();
    else for (const id of api_key_ids) this.revoked.set(id, true);
  }

  /** After any change to credentials. */
  forgetAll(): void {
    this.revoked.clear();
    this.caches.key.clear();
    this.forgetTokens();
  }

  forgetTokens(): void {
    this.caches.jwt.clear();
  }

  private cached({ text, type }: UnverifiedCredential): CachedCredential | undefined {
    const known = this.caches[type].get(text);
    if (known) this.lookups.cached++;
    return known;
  }

  private async lookUp({ type, text }: UnverifiedCredential): Promise<CachedCredential> {
    return (await this.caches[type].fetch(text))!;
  }

  private async counted(verified: Promise<Verified>) {
    try {
      const { lives_ms, ...found } = await verified;
      this.lookups.verified++;
      return { value: found, lives_ms };
    } catch (error) {
      this.lookups[error instanceof ApiError ? 'rejected' : 'failed']++;
      throw error;
    }
  }

  private async lookUpKey(text: string, stale?: CachedCredential): Promise<Verified> {
    const key = await this.keys.find(text);
    if (!key) throw invalidKey();
    const { id: api_key_id, user_id, lives_ms } = key;
    const scopes = key.scopes ? [...new Set(key.scopes)].sort() : ROOT_SCOPES;
    return {
      credential: { type: 'key' as const, api_key_id, user_id, scopes },
      lives_ms: lives_ms ?? Infinity,
      // Its requests may not be counted in the database yet.
      use: stale?.use ?? { api_key_id, requests: 0, network: null },
    };
  }

  private async lookUpToken(text: string): Promise<Verified> {
    const credential = await this.tokens.credentialOf(text);
    return { credential, lives_ms: (credential.expires_at + LEEWAY) * 1000 - this.clock.now() };
  }
}
