import { ExpiringCache } from '../caching/expiring-cache';

/** Changed in place: a number of its own for each request would be garbage that old objects lead to. */
export interface Counter {
  /** When all that was spent is back. */
  full_at: number;
}

// 23 MB of each limit at most, however many addresses somebody has.
const MAX_COUNTERS = 100_000;
const MINUTE = 60_000;

/** Counters of this process, those that were used last. One that nobody used for two periods is full again. */
export class LocalCounters {
  private readonly counters: ExpiringCache<Counter>;

  constructor(period_ms: number, maxCounters = MAX_COUNTERS) {
    // To move a counter to the end costs as much as several uses: once in a while is enough.
    const maxAge = Math.max(period_ms, MINUTE);
    this.counters = new ExpiringCache(
      { freshAfter: (now) => now - maxAge, staleUntil: (now) => now - 2 * maxAge },
      maxCounters,
    );
  }

  get size(): number {
    return this.counters.size;
  }

  /** Milliseconds until all that was spent is back. */
  spent(name: string, now: number): number {
    return Math.max(0, (this.counters.peek(name)?.full_at ?? now) - now);
  }

  /** The counter itself, to be changed in place. */
  of(name: string, now: number): Counter {
    const fresh = this.counters.get(name, now);
    if (fresh) return fresh;
    const counter = this.counters.peek(name) ?? { full_at: now };
    this.counters.set(name, counter, now);
    return counter;
  }
}
