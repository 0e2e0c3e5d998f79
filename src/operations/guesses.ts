import type { Request } from 'express';
import type { ServerResponse } from 'node:http';
import type { RateLimit } from '../config/rate-limits';
import { clientNetworks, type Networks } from '../http/client-address';
import type { Limit } from './limits';
import type { RateLimitsService } from './rate-limits.service';

// How many addresses' allowance a network has: docs/rate-limits.md.
const ADDRESSES_OF = { site: 4, provider: 20 };

/**
 * Failed guesses, by the larger networks around an address. They are counted once they have failed, so that whoever guesses
 * nothing costs the neighbours nothing, and then a network waits until there is room again.
 */
export class Guesses {
  private readonly limits: Limit[];
  /** Until then some network has to wait. */
  private exhausted_until = -Infinity;

  constructor(
    private readonly service: RateLimitsService,
    label: string,
    { count, period_ms }: RateLimit,
  ) {
    this.limits = (['site', 'provider'] as const).map((counts) =>
      service.limit(`${label}:${counts}`, label, counts, { count: count * ADDRESSES_OF[counts], period_ms }),
    );
  }

  /** Refuses a guess from a network that has to wait. */
  ask(req: Request, res: ServerResponse): void {
    const now = performance.now();
    if (now >= this.exhausted_until) return;
    const networks = clientNetworks(req);
    // Redis need not be asked once more: this process knows what it said to the last guess that failed here.
    for (const limit of this.limits) {
      const spent = limit.counters.spent(networks[limit.counts as keyof Networks], now);
      if (limit.wait(spent) > 0) this.service.refuse(res, limit, spent);
    }
  }

  failed(req: Request): void {
    const networks = clientNetworks(req);
    const counted = this.service.add(this.limits, networks, 1);
    if (counted) void counted.then(() => this.note(networks));
    else this.note(networks);
  }

  private note(networks: Networks): void {
    const now = performance.now();
    for (const limit of this.limits) {
      const wait = limit.wait(limit.counters.spent(networks[limit.counts as keyof Networks], now));
      if (wait > 0) this.exhausted_until = Math.max(this.exhausted_until, now + wait);
    }
  }
}
