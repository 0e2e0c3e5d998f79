import { ExpiringCache } from '../caching/expiring-cache';

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
