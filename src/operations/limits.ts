import type { LimitedAs } from '../auth/credential';
import type { RateLimit } from '../config/rate-limits';
import type { Networks } from '../http/client-address';
import type { Counter as Total } from '../http/measurements';
import { LocalCounters } from './local-counters';

/** The names that a caller is counted by: a credential and its user, or networks. */
export type Caller = Partial<LimitedAs & Networks>;

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
