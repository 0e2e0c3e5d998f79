import { Injectable } from '@nestjs/common';
import { AuthModuleOptions, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { ExpiringCache, SingleFlight } from '../../platform/cache/expiring-cache';
import { Clock } from '../../platform/config/clock';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import { ApiKeyLookup } from '../keys/api-key-lookup';
import { type ApiKeyUse, ApiKeyUses } from '../keys/api-key-uses';
import { type Credential, trackersOf, type Trackers, type Presented } from '../access/credential';
import { authenticationRequired, invalidKey } from '../access/errors';
import { ApiError } from '../../platform/errors/api-error';
import { KeyChanges } from '../keys/key-changes';
import { ROOT_SCOPES } from '../access/scopes';
import { LEEWAY } from '../jwt/signing-keys.service';
import { TokensService } from '../jwt/tokens.service';

// In milliseconds. With the duration of a request, a revocation on another replica takes effect within a second.
const TOKEN_MAX_AGE = 700;
// Afterwards only the owner of the token is used, for rate limits.
const TOKEN_OWNER_MAX_AGE = 10 * 60_000;
const MAX_CACHED_TOKENS = 20_000;
// Cached until they change: docs/contributing/decisions/credential-cache.md.
const MAX_CACHED_KEYS = 100_000;

/** A verified credential. Times are those of `Clock.monotonic()`. */
interface CachedCredential {
  credential: Credential;
  trackers: Trackers;
  /** When its lookup was sent. */
  readAt: number;
  expiresAt: number;
  use?: ApiKeyUse;
}

@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  // Rejected credentials aren't cached: an attacker could evict valid ones.
  private readonly caches: Record<Presented['type'], ExpiringCache<CachedCredential>>;
  private readonly lookups = { cached: 0, verified: 0, rejected: 0 };
  private readonly verifying = new SingleFlight<CachedCredential>();

  constructor(
    private readonly keys: ApiKeyLookup,
    private readonly tokens: TokensService,
    private readonly uses: ApiKeyUses,
    private readonly changes: KeyChanges,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    { defaultStrategy }: AuthModuleOptions,
  ) {
    super({ passReqToCallback: true });
    // Passport keeps strategies by name for the whole process, which may contain several apps, as in tests.
    passport.use(defaultStrategy as string, this as passport.Strategy);
    const tokenExpiry = {
      freshAfter: (now: number) => now - TOKEN_MAX_AGE,
      staleUntil: (now: number) => now - TOKEN_OWNER_MAX_AGE,
    };
    this.caches = {
      key: new ExpiringCache(changes, MAX_CACHED_KEYS),
      jwt: new ExpiringCache(tokenExpiry, MAX_CACHED_TOKENS),
    };
    metrics.totals('gamewharf_credential_lookups_total', 'Credential lookups by result', ['result'], () =>
      Object.entries(this.lookups).map(([result, total]) => [{ result }, total]),
    );
  }

  /** Called by passport. */
  async validate(req: Pick<Request, 'presented'>): Promise<Credential> {
    const { presented } = req;
    if (presented instanceof ApiError) throw presented;
    // A token in the query or the body, which passport-http-bearer reads, too.
    if (!presented) throw authenticationRequired();
    const known = this.cached(presented) ?? (await this.verify(presented));
    if (known.use) this.uses.add(known.use, req as Request);
    return known.credential;
  }

  /** The cached credential, if it is still valid. */
  cached({ text, type }: Presented): CachedCredential | undefined {
    const now = this.clock.monotonic();
    const known = this.caches[type].get(text, now);
    if (!known || now >= known.expiresAt) return undefined;
    if (known.use && this.changes.changedSince(known.use.api_key_id, known.readAt)) return undefined;
    this.lookups.cached++;
    return known;
  }

  /** Chooses the rate limits by a credential that was valid before; does not authenticate it. */
  trackersOf({ text, type }: Presented): Trackers | undefined {
    return this.caches[type].peek(text)?.trackers;
  }

  /**
   * After a revocation: removes these keys (without IDs: all) and all JWTs from the cache, and ignores lookups in
   * progress.
   */
  forget(api_key_ids?: readonly number[]): void {
    if (api_key_ids) this.changes.note(api_key_ids);
    else this.caches.key.clear(this.clock.monotonic());
    this.forgetTokens();
  }

  /** All of them, because they are cached only briefly. */
  forgetTokens(): void {
    this.caches.jwt.clear(this.clock.monotonic());
    this.verifying.forget();
  }

  /** Concurrent requests with the same credential share one lookup. */
  private verify({ type, text }: Presented): Promise<CachedCredential> {
    return this.verifying.run(`${type} ${text}`, async () => {
      const readAt = this.clock.monotonic();
      try {
        const found = await (type === 'key' ? this.lookUpKey(text) : this.lookUpToken(text));
        const known: CachedCredential = {
          ...found,
          trackers: trackersOf(found.credential),
          readAt,
          expiresAt: readAt + found.lives_ms,
        };
        this.caches[type].set(text, known, readAt);
        this.lookups.verified++;
        return known;
      } catch (error) {
        this.lookups.rejected++;
        throw error;
      }
    });
  }

  private async lookUpKey(text: string) {
    const key = await this.keys.find(text);
    if (!key) throw invalidKey();
    const { id: api_key_id, user_id, lives_ms } = key;
    const scopes = key.scopes ? [...new Set(key.scopes)].sort() : ROOT_SCOPES;
    return {
      credential: { type: 'key' as const, api_key_id, user_id, scopes },
      lives_ms: lives_ms ?? Infinity,
      use: { api_key_id, requests: 0, network: null },
    };
  }

  private async lookUpToken(text: string) {
    const credential = await this.tokens.credentialOf(text);
    return { credential, lives_ms: (credential.expires_at + LEEWAY) * 1000 - this.clock.now() };
  }
}
