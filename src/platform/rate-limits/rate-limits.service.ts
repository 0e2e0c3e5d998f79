import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import type { ServerResponse } from 'node:http';
import type { LimitedAs } from '../../auth/credential';
import { ExpiringCache } from '../cache/expiring-cache';
import { type LimitName, type RateLimit, rateLimitsOf } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { ApiError } from '../http/api-error';
import { type Counter as Total, Measurements } from '../observability/measurements';
import type { Client } from '../http/client-limits';
import { SharedCounters } from './shared-counters';

const COUNTS: Record<LimitName, keyof Caller> = {
  credential: 'credential',
  user: 'user',
  misses: 'user',
  address: 'network',
  'sign-in': 'network',
};

const seconds = (ms: number) => Math.ceil(ms / 1000);

/** Counts requests, and refuses those over a limit. */
@Injectable()
export class RateLimitsService implements OnApplicationShutdown {
  /** Null: RATE_LIMIT is off. */
  readonly limits: Readonly<Record<LimitName, Limit>> | null = null;
  /** `address`: guesses at credentials and public data; `sign-in`: at passwords. */
  readonly guesses: Readonly<Record<'address' | 'sign-in', Guesses>> | null = null;
  private readonly ofAddress: readonly Limit[] = [];
  private readonly all: Limit[] = [];
  private readonly decisions = new Map<string, Limit['decisions']>();
  private readonly fallbacks: Total;

  constructor(
    { RATE_LIMIT }: Settings,
    private readonly measurements: Measurements,
    @Inject(SharedCounters) private readonly shared: SharedCounters | null,
  ) {
    const rates = rateLimitsOf(RATE_LIMIT);
    if (rates) {
      const limits = Object.entries(rates) as [LimitName, RateLimit][];
      this.limits = Object.fromEntries(
        limits.map(([name, rate]) => [name, this.limit(name, name, COUNTS[name], rate)]),
      ) as Record<LimitName, Limit>;
      this.ofAddress = [this.limits.address];
      this.guesses = {
        address: new Guesses(this, 'address-networks', rates.address),
        'sign-in': new Guesses(this, 'sign-in-networks', rates['sign-in']),
      };
    }
    measurements.gauge(
      'gamewharf_rate_limit_counters',
      'Rate limit counters in the memory of this process',
      () => this.all.reduce((sum, { counters }) => sum + counters.size, 0),
    );
    measurements.gauge(
      'gamewharf_rate_limit_shared',
      '1 if the counters are shared through Redis, otherwise 0',
      () => (this.shared?.available ? 1 : 0),
    );
    this.fallbacks = measurements.counter(
      'gamewharf_rate_limit_fallbacks_total',
      'Rate limit decisions made without Redis while it was unavailable',
    );
  }

  /** `name` is unique and identifies the counters; `label` is the label of the metric. */
  limit(name: string, label: string, counts: keyof Caller, rate: RateLimit): Limit {
    let decisions = this.decisions.get(label);
    if (!decisions) this.decisions.set(label, (decisions = this.measure(label)));
    const limit = new Limit(name, counts, rate, decisions, label === ('misses' satisfies LimitName));
    this.all.push(limit);
    return limit;
  }

  /** Counts the request for each limit, or refuses it and counts nothing. Sets the rate limit headers. */
  spend(res: ServerResponse, limits: readonly Limit[], caller: Caller): void | Promise<void> {
    if (!this.shared) return this.spendHere(res, limits, caller);
    return this.shared.count(limits, caller, 1, 'refusable').then((before) => {
      this.learn(limits, caller, before);
      this.spendHere(res, limits, caller);
    });
  }

  /** For a request that counts only for its address. */
  spendAddress(req: Request, res: ServerResponse): void | Promise<void> {
    if (this.limits) return this.spend(res, this.ofAddress, req.exchange.client);
  }

  /** Counts one more after the decision, or undoes one. */
  add(limits: readonly Limit[], caller: Caller, cost: 1 | -1): void | Promise<void> {
    if (!this.shared) return this.addHere(limits, caller, cost);
    return this.shared.count(limits, caller, cost, 'in any case').then((before) => {
      this.learn(limits, caller, before);
      this.addHere(limits, caller, cost);
    });
  }

  refuse(res: ServerResponse, limit: Limit, spent_ms: number): never {
    limit.decisions.limited.value++;
    show(res, limit, spent_ms);
    throw new ApiError(429, ['rate limit exceeded'], {
      'Retry-After': String(Math.max(1, seconds(limit.wait(spent_ms)))),
    });
  }

  onApplicationShutdown(): void {
    this.shared?.close();
  }

  /** Replaces local counters by those of Redis, so that they are current when Redis fails. */
  private learn(limits: readonly Limit[], caller: Caller, spent_ms: number[] | undefined): void {
    if (!spent_ms) {
      this.fallbacks.value++;
      return;
    }
    const now = performance.now();
    for (const [i, { counters, counts }] of limits.entries())
      counters.of(caller[counts]!, now).full_at = now + spent_ms[i]!;
  }

  private spendHere(res: ServerResponse, limits: readonly Limit[], caller: Caller): void {
    const now = performance.now();
    let shown: Limit | undefined;
    let shown_spent = 0;
    let fewest = Infinity;
    for (let i = 0; i < limits.length; i++) {
      const limit = limits[i]!;
      const counter = limit.counters.of(caller[limit.counts]!, now);
      const before = counter.full_at > now ? counter.full_at - now : 0;
      if (limit.wait(before) > 0) {
        this.addHere(limits.slice(0, i), caller, -1);
        this.refuse(res, limit, before);
      }
      const spent = before + limit.interval_ms;
      counter.full_at = now + spent;
      limit.decisions.allowed.value++;
      // Most lookups get their miss back, so the headers do not show it.
      if (limit.quiet) continue;
      const remaining = limit.remaining(spent);
      if (remaining >= fewest) continue;
      shown = limit;
      shown_spent = spent;
      fewest = remaining;
    }
    if (shown) show(res, shown, shown_spent);
  }

  private addHere(limits: readonly Limit[], caller: Caller, cost: 1 | -1): void {
    const now = performance.now();
    for (const { counters, counts, interval_ms } of limits) {
      const counter = counters.of(caller[counts]!, now);
      counter.full_at = Math.max(now, Math.max(now, counter.full_at) + cost * interval_ms);
    }
  }

  private measure(limit: string): Limit['decisions'] {
    const counter = (decision: string) =>
      this.measurements.counter('gamewharf_rate_limit_decisions_total', 'Rate limit decisions', {
        limit,
        decision,
      });
    return { allowed: counter('allowed'), limited: counter('limited') };
  }
}

function show(res: ServerResponse, limit: Limit, spent_ms: number): void {
  res.setRateLimit(limit.count, limit.remaining(spent_ms), seconds(spent_ms));
}

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
export type Caller = Partial<LimitedAs & Pick<Client, 'network' | 'site' | 'provider'>>;

/** By the generic cell rate algorithm: a counter is the time at which the whole limit is available again. */
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

  spentBy(caller: Caller, now: number): number {
    return this.counters.spent(caller[this.counts]!, now);
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

// A network's limit is that of so many addresses: docs/reference/rate-limits.md.
const ADDRESSES_PER_NETWORK = { site: 4, provider: 20 };

/** Limits failed guesses by the larger networks around an address. Only failures count. */
export class Guesses {
  private readonly limits: Limit[];
  /** No network has to wait after this time. */
  private exhausted_until = -Infinity;

  constructor(
    private readonly service: RateLimitsService,
    label: string,
    { count, period_ms }: RateLimit,
  ) {
    this.limits = (['site', 'provider'] as const).map((counts) =>
      service.limit(`${label}:${counts}`, label, counts, {
        count: count * ADDRESSES_PER_NETWORK[counts],
        period_ms,
      }),
    );
  }

  /** Refuses a guess from a network that has to wait. */
  check(req: Request, res: ServerResponse): void {
    const now = performance.now();
    if (now >= this.exhausted_until) return;
    const { client } = req.exchange;
    // The local counters are enough: they hold what Redis answered to the last failed guess.
    for (const limit of this.limits) {
      const spent = limit.spentBy(client, now);
      if (limit.wait(spent) > 0) this.service.refuse(res, limit, spent);
    }
  }

  failed(req: Request): void {
    const { client } = req.exchange;
    const counted = this.service.add(this.limits, client, 1);
    if (counted) void counted.then(() => this.note(client));
    else this.note(client);
  }

  private note(client: Client): void {
    const now = performance.now();
    for (const limit of this.limits) {
      const wait = limit.wait(limit.spentBy(client, now));
      if (wait > 0) this.exhausted_until = Math.max(this.exhausted_until, now + wait);
    }
  }
}
