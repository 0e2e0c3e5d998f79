import type { RateLimit } from '../config/rate-limits';

export interface Decision {
  allowed: boolean;
  /** How many more would be allowed now. */
  remaining: number;
  /** Until all is allowed again. */
  reset_ms: number;
  /** Until one more is allowed; 0 where it is. */
  retry_ms: number;
}

/** What a request costs: 1, or 0 to ask only, or -1 to give back. */
export type Cost = 1 | 0 | -1;

// Two generations of so many counters each are kept of each limit: some 20 MB at most, however many addresses somebody commands.
const GENERATION = 50_000;

// An object that is changed: a number of its own in the table for each request would be garbage that old objects lead to.
interface Counter {
  full_at: number;
}

/**
 * One number a counter: the time at which all that was spent is back (the generic cell rate algorithm). It needs no timer
 * and no list of hits, and allows no double share at the border of two windows.
 */
export class LocalCounters {
  private young = new Map<string, Counter>();
  private old = new Map<string, Counter>();

  constructor(private readonly generation = GENERATION) {}

  get size(): number {
    return this.young.size + this.old.size;
  }

  spend(key: string, limit: RateLimit, cost: Cost, now = performance.now()): Decision {
    const young = this.young.get(key);
    const counter = young ?? this.old.get(key) ?? { full_at: now };
    const decision = decide(Math.max(0, counter.full_at - now), limit, cost);
    if (decision.allowed && cost !== 0) {
      counter.full_at = now + decision.reset_ms;
      if (!young) this.keep(key, counter);
    }
    return decision;
  }

  private keep(key: string, counter: Counter): void {
    this.young.set(key, counter);
    if (this.young.size < this.generation) return;
    this.old = this.young;
    this.young = new Map();
  }
}

/** `spent_ms`: how long it takes until all that was spent is back. */
export function decide(spent_ms: number, { count, period_ms }: RateLimit, cost: Cost): Decision {
  const interval = period_ms / count;
  const after = spent_ms + Math.max(cost, 0) * interval;
  const room = period_ms - spent_ms;
  // A hair of tolerance: fractions of milliseconds add up to a little more than their sum.
  if (cost >= 0 && room - interval < -1e-6)
    return { allowed: false, remaining: 0, reset_ms: spent_ms, retry_ms: interval - room };
  const left = cost < 0 ? Math.max(0, spent_ms - interval) : after;
  return {
    allowed: true,
    remaining: Math.max(0, Math.floor((period_ms - left) / interval + 1e-6)),
    reset_ms: left,
    retry_ms: 0,
  };
}
