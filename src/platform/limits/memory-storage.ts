import type { ThrottlerStorage } from '@nestjs/throttler';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../config/clock';
import type { RateLimit } from '../config/rate-limits';
import type { Counter as Total } from 'prom-client';
import type { MetricsRegistry } from '../observability/metrics-registry';

export type LimitRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

// The counters of one limit use up to 23 MB.
const MAX_COUNTERS = 100_000;
// Tolerance for rounding errors.
const ROUNDING = 1e-6;

const seconds = (ms: number) => Math.ceil(ms / 1000);

/** Changed in place, so that a request allocates nothing. */
interface Counter {
  /** Time at which the whole limit is available again. */
  refilledAt: number;
}

/** A counter and its limit. `ttl`: its period in milliseconds, in throttler's terms. */
export interface Charge {
  name: string;
  key: string;
  limit: number;
  ttl: number;
}

export const createCharge = (name: string, clientKey: string, { count, period_ms }: RateLimit): Charge => ({
  name,
  key: `${name}:${clientKey}`,
  limit: count,
  ttl: period_ms,
});

/** The most recently used counters of one limit. */
class Counters {
  readonly decisions = { allowed: 0, limited: 0 };
  // `maxSize` instead of `max`, which would allocate the memory of all counters at once.
  readonly cache: LRUCache<string, Counter>;

  constructor(maxSize: number) {
    this.cache = new LRUCache({ maxSize, sizeCalculation: () => 1 });
  }

  of({ key }: Charge, now: number): Counter {
    let counter = this.cache.get(key);
    if (!counter) this.cache.set(key, (counter = { refilledAt: now }));
    return counter;
  }
}

/**
 * Throttler's storage in the memory of this process, by the generic cell rate algorithm: a limit refills evenly, and a
 * counter is one number. Throttler's own storage keeps the time of every request.
 */
export class MemoryStorage implements ThrottlerStorage {
  protected readonly fallbacks: Total;
  private readonly limits: Map<string, Counters>;

  constructor(
    protected readonly clock: Clock,
    metrics: MetricsRegistry,
    names: readonly string[] = [],
    private readonly maxCounters = MAX_COUNTERS,
  ) {
    this.limits = new Map(names.map((name) => [name, new Counters(maxCounters)]));
    metrics.totals(
      'gamewharf_rate_limit_decisions_total',
      'Rate limit decisions',
      ['limit', 'decision'],
      () =>
        [...this.limits].flatMap(([limit, { decisions }]) =>
          Object.entries(decisions).map(([decision, total]) => [{ limit, decision }, total] as const),
        ),
    );
    this.fallbacks = metrics.counter(
      'gamewharf_rate_limit_fallbacks_total',
      'Rate limit decisions made without Redis while it was unavailable',
    );
    metrics.gauge('gamewharf_rate_limit_counters', 'Rate limit counters in the memory of this process', () =>
      [...this.limits.values()].reduce((sum, { cache }) => sum + cache.size, 0),
    );
    metrics.gauge(
      'gamewharf_rate_limit_shared',
      '1 if the counters are shared through Redis, otherwise 0',
      () => (this.isShared ? 1 : 0),
    );
  }

  get isShared(): boolean {
    return false;
  }

  /** Counts a request unless the limit is used up. */
  increment(key: string, ttl: number, limit: number, _: number, name: string): Promise<LimitRecord> {
    const now = this.clock.monotonic();
    const counters = this.of(name);
    const counter = counters.of({ name, key, limit, ttl }, now);
    const isBlocked = waitAfter(counter.refilledAt - now, limit, ttl) > ROUNDING;
    counters.decisions[isBlocked ? 'limited' : 'allowed']++;
    if (!isBlocked) counter.refilledAt = Math.max(now, counter.refilledAt) + ttl / limit;
    return Promise.resolve(createRecord(counter.refilledAt - now, { limit, ttl, isBlocked }));
  }

  /** Counts one more, even beyond the limit, or refunds one. */
  add(charge: Charge, count: 1 | -1): Promise<void> {
    const now = this.clock.monotonic();
    const counter = this.of(charge.name).of(charge, now);
    counter.refilledAt = Math.max(
      now,
      Math.max(now, counter.refilledAt) + (count * charge.ttl) / charge.limit,
    );
    return Promise.resolve();
  }

  /** The record of an exhausted limit, otherwise undefined. Counts no request and doesn't query Redis. */
  blocked(charge: Charge): LimitRecord | undefined {
    const { cache, decisions } = this.of(charge.name);
    const { key, limit, ttl } = charge;
    const used_ms = (cache.get(key)?.refilledAt ?? 0) - this.clock.monotonic();
    if (waitAfter(used_ms, limit, ttl) <= ROUNDING) return undefined;
    decisions.limited++;
    return createRecord(used_ms, { limit, ttl, isBlocked: true });
  }

  /**
   * Replaces a counter with that of all processes, if it is known. The request must be counted right afterwards,
   * because other requests update the counter too.
   */
  protected adoptSharedCounter(charge: Charge, used_ms: number | undefined): void {
    const now = this.clock.monotonic();
    if (used_ms !== undefined) this.of(charge.name).of(charge, now).refilledAt = now + used_ms;
  }

  private of(name: string): Counters {
    let counters = this.limits.get(name);
    if (!counters) this.limits.set(name, (counters = new Counters(this.maxCounters)));
    return counters;
  }
}

/** The milliseconds to wait before the next request. `used_ms`: those until the whole limit is available again. */
const waitAfter = (used_ms: number, limit: number, ttl: number) => used_ms + ttl / limit - ttl;

function createRecord(
  used_ms: number,
  { limit, ttl, isBlocked }: { limit: number; ttl: number; isBlocked: boolean },
): LimitRecord {
  const remaining = Math.max(0, Math.min(limit, Math.floor((1 - used_ms / ttl) * limit + ROUNDING)));
  return {
    totalHits: limit - remaining,
    timeToExpire: seconds(Math.max(0, used_ms)),
    isBlocked,
    timeToBlockExpire: Math.max(1, seconds(waitAfter(used_ms, limit, ttl))),
  };
}
