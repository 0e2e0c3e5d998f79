import type { Request } from 'express';
import type { ServerResponse } from 'node:http';
import type { RateLimit } from '../config/rate-limits';
import type { Sender } from '../http/senders';
import type { Limit, RateLimitsService } from './rate-limits.service';

// A network's limit is that of so many addresses: docs/reference/rate-limits.md.
const ADDRESSES_PER_NETWORK = { site: 4, provider: 20 };

/**
 * Limits failed guesses by the larger networks around an address. Only failures count, so that other requests use up
 * nothing of their network's limit.
 */
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
    const { sender } = req.exchange;
    // The local counters are enough: they hold what Redis answered to the last failed guess.
    for (const limit of this.limits) {
      const spent = limit.counters.spent(sender[limit.counts as keyof typeof ADDRESSES_PER_NETWORK], now);
      if (limit.wait(spent) > 0) this.service.refuse(res, limit, spent);
    }
  }

  failed(req: Request): void {
    const { sender } = req.exchange;
    const counted = this.service.add(this.limits, sender, 1);
    if (counted) void counted.then(() => this.note(sender));
    else this.note(sender);
  }

  private note(sender: Sender): void {
    const now = performance.now();
    for (const limit of this.limits) {
      const wait = limit.wait(
        limit.counters.spent(sender[limit.counts as keyof typeof ADDRESSES_PER_NETWORK], now),
      );
      if (wait > 0) this.exhausted_until = Math.max(this.exhausted_until, now + wait);
    }
  }
}
