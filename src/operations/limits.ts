import type { LimitedAs } from '../auth/credential';
import { ExpiringCache } from '../caching/expiring-cache';
import type { RateLimit } from '../config/rate-limits';
import type { Sender } from '../http/senders';
import type { Counter as Total } from '../http/measurements';

/** Changed in place, to allocate nothing for each request. */
export interface Counter {
  /** When the whole limit is available again. */
  full_at: number;
}

// 23 MB for each limit.
const MAX_COUNTERS = 100_000;
const MINUTE = 60_000;

/** The most recently used counters of this process. A counter that is unused for two periods expires. */
export class LocalCounters {
  private readonly counters: ExpiringCache<Counter>;

  constructor(period_ms: number, maxCounters = MAX_COUNTERS) {
    // Counters are moved to the end of the cache only once a period, since that costs as much as several uses.
    const maxAge = Math.max(period_ms, MINUTE);
    this.counters = new ExpiringCache(
      { freshAfter: (now) => now - maxAge, staleUntil: (now) => now - 2 * maxAge },
      maxCounters,
    );
  }

  get size(): number {
    return this.counters.size;
  }

  /** Milliseconds until the whole limit is available again. */
  spent(name: string, now: number): number {
    return Math.max(0, (this.counters.peek(name)?.full_at ?? now) - now);
  }

  /** The counter, to be changed in place. */
  of(name: string, now: number): Counter {
    const fresh = this.counters.get(name, now);
    if (fresh) return fresh;
    const counter = this.counters.peek(name) ?? { full_at: now };
    this.counters.set(name, counter, now);
    return counter;
  }
}

/** The names that a caller is counted by: a credential and its user, or the networks of its address. */
export type Caller = Partial<LimitedAs & Pick<Sender, 'network' | 'site' | 'provider'>>;

/**
 * A limit by the generic cell rate algorithm: a counter is the time at which the whole limit is available again. It needs
 * no timer and no list of hits, and has no bursts at the border of two windows.
 */
export class Limit {
  readonly count: number;
  readonly period_ms: number;
  readonly interval_ms: number;
  /** The counters of this process. */
  readonly counters: LocalCounters;

  constructor(
    /** Unique: the prefix of its counters in Redis. */
    readonly name: string,
    readonly counts: keyof Caller,
    { count, period_ms }: RateLimit,
    readonly decisions: Record<'allowed' | 'limited', Total>,
    /** The headers show it only when it refuses. */
    readonly quiet: boolean,
  ) {
    this.count = count;
    this.period_ms = period_ms;
    this.interval_ms = period_ms / count;
    this.counters = new LocalCounters(period_ms);
  }

  /** Milliseconds until the next request is allowed. */
  wait(spent_ms: number): number {
    const wait = spent_ms + this.interval_ms - this.period_ms;
    // Tolerance for rounding errors.
    return wait > 1e-6 ? wait : 0;
  }

  /** The number of requests that are allowed now. */
  remaining(spent_ms: number): number {
    return Math.max(0, Math.floor((this.period_ms - spent_ms) / this.interval_ms + 1e-6));
  }
}
