import type { LimitedAs } from '../auth/credential';
import type { RateLimit } from '../config/rate-limits';
import type { Networks } from '../http/client-address';
import type { Counter as Total } from '../http/measurements';
import { LocalCounters } from './local-counters';

/** By what a caller is counted: a credential and its user, or the networks that a stranger asks from. */
export type Caller = Partial<LimitedAs & Networks>;

/**
 * One limit, by the generic cell rate algorithm: a counter is the time at which all that was spent is back. It needs no
 * timer and no list of hits, and allows no double share at the border of two windows.
 */
export class Limit {
  readonly count: number;
  readonly period_ms: number;
  readonly interval_ms: number;
  /** The counters of this process. */
  readonly counters: LocalCounters;

  constructor(
    /** Unique: the name of its counters in Redis begins with it. */
    readonly name: string,
    readonly counts: keyof Caller,
    { count, period_ms }: RateLimit,
    readonly decisions: Record<'allowed' | 'limited', Total>,
    /** Its state is shown only where it refuses. */
    readonly quiet: boolean,
  ) {
    this.count = count;
    this.period_ms = period_ms;
    this.interval_ms = period_ms / count;
    this.counters = new LocalCounters(period_ms);
  }

  /** Until one more is allowed; 0 where it is. */
  wait(spent_ms: number): number {
    const wait = spent_ms + this.interval_ms - this.period_ms;
    // A hair of tolerance: fractions of milliseconds add up to a little more than their sum.
    return wait > 1e-6 ? wait : 0;
  }

  /** How many more are allowed. */
  remaining(spent_ms: number): number {
    return Math.max(0, Math.floor((this.period_ms - spent_ms) / this.interval_ms + 1e-6));
  }
}
