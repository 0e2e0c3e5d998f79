import { ShortMemory } from '../caching/short-memory';

/** Changed in place: a number of its own for each request would be garbage that old objects lead to. */
export interface Counter {
  /** When all that was spent is back. */
  full_at: number;
}

// 23 MB of each limit at most, however many addresses somebody has.
const MOST = 100_000;

/** Counters of this process, those that were used last. One without a use in two periods has nothing left to tell. */
export class LocalCounters {
  private readonly counters: ShortMemory<Counter>;

  constructor(period_ms: number, most = MOST) {
    this.counters = new ShortMemory(
      { freshAfter: (now) => now - period_ms, staleUntil: (now) => now - 2 * period_ms },
      most,
    );
  }

  get size(): number {
    return this.counters.size;
  }

  /** Milliseconds until all that was spent is back. */
  spent(name: string, now: number): number {
    return Math.max(0, (this.counters.last(name)?.full_at ?? now) - now);
  }

  /** To be changed: it is kept as one that is in use. */
  of(name: string, now: number): Counter {
    const fresh = this.counters.get(name, now);
    if (fresh) return fresh;
    const counter = this.counters.last(name) ?? { full_at: now };
    this.counters.set(name, counter, now);
    return counter;
  }
}
