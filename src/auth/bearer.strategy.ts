import { Injectable } from '@nestjs/common';
import { AuthModuleOptions, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import type { Counter } from 'prom-client';
import { ExpiringCache, SingleFlight } from '../platform/cache/expiring-cache';
import { Clock } from '../platform/config/clock';
import { Measurements } from '../platform/observability/measurements';
import { ApiKeyLookup, type KnownKey } from './api-key-lookup';
import { type Credential, hasFormOfJwt, trackersOf, type Trackers, type Presented } from './credential';
import { KeyChanges } from './key-changes';
import { invalidKey } from './errors';
import { LEEWAY } from './signing-keys.service';
import { TokensService } from './tokens.service';

// In milliseconds. With the duration of a request, a revocation on another replica takes effect within a second.
const TOKEN_MAX_AGE = 700;
// Afterwards only the owner of the token is used, for rate limits.
const TOKEN_OWNER_MAX_AGE = 10 * 60_000;
const MAX_TOKENS = 20_000;
// Cached until they change: docs/contributing/decisions/credential-cache.md.
const MAX_KEYS = 100_000;

interface KnownToken {
  credential: Credential;
  trackers: Trackers;
}

/** Verifies API keys and JWTs, and caches valid ones. */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  // Rejected credentials aren't cached: an attacker could evict valid ones.
  private readonly keys: ExpiringCache<KnownKey>;
  private readonly tokens = new ExpiringCache<KnownToken>(
    { freshAfter: (now) => now - TOKEN_MAX_AGE, staleUntil: (now) => now - TOKEN_OWNER_MAX_AGE },
    MAX_TOKENS,
  );
  private readonly lookups: Counter<'result'>;
  private readonly verifying = new SingleFlight<Credential>();

  constructor(
    private readonly lookup: ApiKeyLookup,
    private readonly issuer: TokensService,
    private readonly changes: KeyChanges,
    private readonly clock: Clock,
    measurements: Measurements,
    { defaultStrategy }: AuthModuleOptions,
  ) {
    super({ passReqToCallback: true });
    // Passport keeps strategies by name for the whole process, which may contain several apps, as in tests.
    passport.use(defaultStrategy as string, this as passport.Strategy);
    this.keys = new ExpiringCache(changes, MAX_KEYS);
    this.lookups = measurements.counter(
      'gamewharf_credential_lookups_total',
      'Credential lookups by result',
      {
        result: ['cached', 'verified', 'rejected'],
      },
    );
  }

  /** Called by passport. */
  async validate(req: Request | undefined, token: string): Promise<Credential> {
    const known = req?.presented;
    const presented: Presented =
      known && 'type' in known ? known : { type: hasFormOfJwt(token) ? 'jwt' : 'key', text: token };
    return this.remembered(presented, req) ?? this.verify(presented, req);
  }

  /** The cached credential, if it is still valid. */
  remembered({ text, type }: Presented, req?: Request): Credential | undefined {
    const now = this.clock.monotonic();
    const credential = type === 'key' ? this.rememberedKey(text, now, req) : this.rememberedToken(text, now);
    if (credential) this.lookups.inc({ result: 'cached' });
    return credential;
  }

  /** Chooses the rate limits by a credential that was valid before; does not authenticate it. */
  trackersOf({ text, type }: Presented): Trackers | undefined {
    return (type === 'key' ? this.keys : this.tokens).peek(text)?.trackers;
  }

  /**
   * After a revocation: removes these keys (without IDs: all) and all JWTs from the cache, and ignores lookups in
   * progress.
   */
  forget(api_key_ids?: readonly number[]): void {
    if (api_key_ids) this.changes.note(api_key_ids);
    else this.keys.clear(this.clock.monotonic());
    this.forgetTokens();
  }

  /** All of them, because they are cached only briefly. */
  forgetTokens(): void {
    this.tokens.clear(this.clock.monotonic());
    this.verifying.forget();
  }

  /** Concurrent requests with the same credential share one lookup. */
  private verify(presented: Presented, req?: Request): Promise<Credential> {
    return this.verifying.run(`${presented.type} ${presented.text}`, () => this.learn(presented, req));
  }

  private rememberedKey(text: string, now: number, req?: Request): Credential | undefined {
    const key = this.keys.get(text, now);
    if (!key || now >= key.ends || this.changes.changedSince(key.credential.api_key_id, key.readAt))
      return undefined;
    this.lookup.used(key, now, req);
    return key.credential;
  }

  private rememberedToken(text: string, now: number): Credential | undefined {
    const credential = this.tokens.get(text, now)?.credential;
    return credential && !hasExpired(credential, this.clock.now()) ? credential : undefined;
  }

  private async learn({ type, text }: Presented, req?: Request): Promise<Credential> {
    try {
      const credential = type === 'key' ? await this.learnKey(text, req) : await this.learnToken(text);
      this.lookups.inc({ result: 'verified' });
      return credential;
    } catch (error) {
      this.lookups.inc({ result: 'rejected' });
      throw error;
    }
  }

  private async learnKey(text: string, req?: Request): Promise<Credential> {
    const key = await this.lookup.find(text, req);
    if (!key) throw invalidKey();
    this.keys.set(text, key, key.readAt);
    return key.credential;
  }

  private async learnToken(text: string): Promise<Credential> {
    const readAt = this.clock.monotonic();
    const credential = await this.issuer.credentialOf(text);
    this.tokens.set(text, { credential, trackers: trackersOf(credential) }, readAt);
    return credential;
  }
}

const hasExpired = ({ expires_at = Infinity }: Credential, now: number) => now / 1000 >= expires_at + LEEWAY;
