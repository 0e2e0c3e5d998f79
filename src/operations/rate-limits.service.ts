import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import type { ServerResponse } from 'node:http';
import { type RateLimit, type RateLimits, rateLimitsOf } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { Failure } from '../http/failure';
import { type Counter, Measurements } from '../http/measurements';
import { type Cost, type Decision, LocalCounters } from './local-counters';
import { SharedCounters } from './shared-counters';

export type LimitName = keyof RateLimits;

const seconds = (ms: number) => Math.ceil(ms / 1000);

/** Who may ask how often. Also the storage of @nestjs/throttler, so that its own guard and decorators count here too. */
@Injectable()
export class RateLimitsService implements ThrottlerStorage, OnApplicationShutdown {
  /** Null: nothing is limited. */
  readonly limits: RateLimits | null;
  // Of each limit apart: by a name that was put together for each request it would be looked for letter by letter.
  private readonly local = Object.create(null) as Record<string, LocalCounters>;
  private readonly decisions = new Map<string, { allowed: Counter; limited: Counter }>();
  private readonly alone: Counter;

  constructor(
    { RATE_LIMIT }: Settings,
    measurements: Measurements,
    @Inject(SharedCounters) private readonly shared: SharedCounters | null,
  ) {
    this.limits = rateLimitsOf(RATE_LIMIT) ?? null;
    for (const limit of Object.keys(this.limits ?? {})) {
      const counter = (decision: string) =>
        measurements.counter('gamewharf_rate_limit_decisions_total', 'What the rate limits decided', {
          limit,
          decision,
        });
      this.decisions.set(limit, { allowed: counter('allowed'), limited: counter('limited') });
    }
    measurements.gauge('gamewharf_rate_limit_counters', 'Counters kept by this process', () =>
      Object.values(this.local).reduce((sum, { size }) => sum + size, 0),
    );
    measurements.gauge(
      'gamewharf_rate_limit_shared',
      'Whether the counters are shared through Redis now',
      () => (this.shared?.available ? 1 : 0),
    );
    this.alone = measurements.counter(
      'gamewharf_rate_limit_fallbacks_total',
      'Decisions made without Redis although it is configured',
    );
  }

  /** Refuses what is too much; otherwise says in the answer's headers how much is left. */
  spend(res: ServerResponse, name: LimitName, whose: string): void | Promise<void> {
    const decision = this.count(name, whose, this.limits![name], 1);
    if (decision instanceof Promise) return decision.then((made) => this.enforce(res, name, made));
    this.enforce(res, name, decision);
  }

  /** Refuses where nothing is left, and spends nothing. */
  ask(res: ServerResponse, name: LimitName, whose: string): void | Promise<void> {
    const refuse = (decision: Decision) => {
      if (!decision.allowed) this.enforce(res, name, decision);
    };
    const decision = this.count(name, whose, this.limits![name], 0);
    return decision instanceof Promise ? decision.then(refuse) : refuse(decision);
  }

  /** Counts what was found out only later, or gives it back: nothing is refused any more. */
  note(name: LimitName, whose: string, cost: Cost = 1): void {
    if (this.limits) void this.count(name, whose, this.limits[name], cost);
  }

  async increment(key: string, ttl: number, limit: number, _blockDuration: number, throttlerName: string) {
    const period = { count: limit, period_ms: ttl };
    const { allowed, remaining, reset_ms, retry_ms } = await this.count(throttlerName, key, period, 1);
    return {
      totalHits: allowed ? limit - remaining : limit + 1,
      timeToExpire: seconds(reset_ms),
      isBlocked: !allowed,
      timeToBlockExpire: seconds(retry_ms),
    };
  }

  onApplicationShutdown(): void {
    this.shared?.close();
  }

  private count(name: string, whose: string, limit: RateLimit, cost: Cost): Decision | Promise<Decision> {
    if (!this.shared) return this.countHere(name, whose, limit, cost);
    if (!this.shared.available) return this.countAlone(name, whose, limit, cost);
    return this.shared
      .spend(`${name}:${whose}`, limit, cost)
      .then((decision) => decision ?? this.countAlone(name, whose, limit, cost));
  }

  private countAlone(name: string, whose: string, limit: RateLimit, cost: Cost): Decision {
    this.alone.value++;
    return this.countHere(name, whose, limit, cost);
  }

  private countHere(name: string, whose: string, limit: RateLimit, cost: Cost): Decision {
    return (this.local[name] ??= new LocalCounters()).spend(whose, limit, cost);
  }

  private enforce(res: ServerResponse, name: LimitName, decision: Decision): void {
    const counters = this.decisions.get(name)!;
    const { remaining, reset_ms } = decision;
    res.allowance =
      `X-RateLimit-Limit: ${this.limits![name].count}\r\nX-RateLimit-Remaining: ${remaining}\r\n` +
      `X-RateLimit-Reset: ${seconds(reset_ms)}\r\n`;
    if (decision.allowed) {
      counters.allowed.value++;
      return;
    }
    counters.limited.value++;
    throw new Failure(429, ['rate limit exceeded'], {
      'Retry-After': String(Math.max(1, seconds(decision.retry_ms))),
    });
  }
}
