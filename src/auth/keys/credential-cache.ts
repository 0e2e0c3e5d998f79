import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Clock } from '../../platform/config/clock';
import { LookupCache } from '../../platform/database/lookup-cache';
import { ApiError } from '../../platform/errors/api-error';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import type { Credential, UnverifiedCredential } from '../access/credential';
import type { ApiKeyUse } from './api-key-uses';

/** A revocation on another replica takes effect within a second, including the duration of a request. */
export const CREDENTIAL_TTL_MS = 700;
const MAX_CACHED_CREDENTIALS = 50_000;
// Longer than the TTL and the longest lookup, so that the cache then contains nothing that was read before
// the revocation.
const REVOKED_TTL_MS = 5000;
const MAX_REVOKED_CREDENTIALS = 10_000;

interface CachedCredential {
  credential: Credential;
  use?: ApiKeyUse;
}

export type FoundCredential = CachedCredential & { lives_ms: number };
/** `stale`: an older result for the same text. */
type Lookup = (stale: CachedCredential | undefined) => Promise<FoundCredential>;

/** Caches verified credentials, for the reasons in docs/contributing/decisions/performance.md. */
@Injectable()
export class CredentialCache {
  // Rejected credentials aren't cached: an attacker could evict valid ones.
  private readonly caches: Record<UnverifiedCredential['type'], LookupCache<CachedCredential>>;
  /** The IDs of API keys that this process revoked. */
  private readonly revoked: LRUCache<number, true>;
  private readonly lookups = { cached: 0, verified: 0, rejected: 0, failed: 0 };

  constructor(clock: Clock, metrics: MetricsRegistry) {
    const cache = () =>
      new LookupCache<CachedCredential>(clock, { max: MAX_CACHED_CREDENTIALS, ttl_ms: CREDENTIAL_TTL_MS });
    this.caches = { key: cache(), jwt: cache() };
    this.revoked = new LRUCache({
      max: MAX_REVOKED_CREDENTIALS,
      ttl: REVOKED_TTL_MS,
      ttlResolution: 0,
      perf: { now: () => clock.monotonic() },
    });
    metrics.totals('gamewharf_credential_lookups_total', 'Credential lookups by result', ['result'], () =>
      Object.entries(this.lookups).map(([result, total]) => [{ result }, total]),
    );
  }

  /** The cached credential, unless this process revoked its API key. */
  get({ type, text }: UnverifiedCredential): CachedCredential | undefined {
    const found = this.caches[type].get(text);
    if (!found || this.isRevoked(found)) return undefined;
    this.lookups.cached++;
    return found;
  }

  /** The cached credential, or the result of the lookup; undefined if this process revoked its API key. */
  async find(unverified: UnverifiedCredential, look: Lookup): Promise<CachedCredential | undefined> {
    const cached = this.get(unverified);
    if (cached) return cached;
    const cache = this.caches[unverified.type];
    const found = await cache.find(unverified.text, () =>
      this.counted(look(cache.getStale(unverified.text))),
    );
    return this.isRevoked(found) ? undefined : found;
  }

  private isRevoked({ credential }: CachedCredential): boolean {
    return this.revoked.has(credential.api_key_id ?? NaN);
  }

  /** Whether the credential was valid recently; does not authenticate it. */
  isCached(unverified: UnverifiedCredential | ApiError | undefined): boolean {
    if (!unverified || unverified instanceof ApiError) return false;
    return this.caches[unverified.type].getStale(unverified.text) !== undefined;
  }

  /** Rejects revoked API keys and their JWTs, including those that are being looked up. */
  forget(api_key_ids: readonly number[]): void {
    if (api_key_ids.length > MAX_REVOKED_CREDENTIALS) this.forgetAll();
    else for (const id of api_key_ids) this.revoked.set(id, true);
  }

  /** Clears the cache, after any change to credentials. */
  forgetAll(): void {
    this.revoked.clear();
    this.caches.key.clear();
    this.forgetTokens();
  }

  forgetTokens(): void {
    this.caches.jwt.clear();
  }

  private async counted(looking: Promise<FoundCredential>) {
    try {
      const { lives_ms, ...value } = await looking;
      this.lookups.verified++;
      return { value, lives_ms };
    } catch (error) {
      this.lookups[error instanceof ApiError ? 'rejected' : 'failed']++;
      throw error;
    }
  }
}
