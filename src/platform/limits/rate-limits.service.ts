import { Injectable } from '@nestjs/common';
import { InjectThrottlerStorage } from '@nestjs/throttler';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type RateLimits, parseRateLimits } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { ApiError } from '../errors/api-error';
import { type LimitRecord, MemoryStorage, type Charge, createCharge } from './memory-storage';

// A network's limit is that of this many IP addresses: docs/reference/limits.md.
const ADDRESSES_PER_NETWORK = { site: 4, provider: 20 };

/** `address`: failed credential checks; `misses`: failed lookups without a credential; `sign-in`: failed passwords. */
type Attempts = 'address' | 'misses' | 'sign-in';

/** Counts requests and failed attempts, and rejects those beyond a limit. */
@Injectable()
export class RateLimitsService {
  /** Null: RATE_LIMIT is off. */
  readonly rates: RateLimits | null;

  constructor(
    { RATE_LIMIT }: Settings,
    @InjectThrottlerStorage() private readonly storage: MemoryStorage,
  ) {
    this.rates = parseRateLimits(RATE_LIMIT) ?? null;
  }

  /** Counts a request, reports the remaining ones in the headers, and rejects the request if none remain. */
  async charge(res: ServerResponse, charge: Charge): Promise<void> {
    const record = await this.chargeUnreported(res, charge);
    res.setRateLimit(charge.limit, charge.limit - record.totalHits, record.timeToExpire);
  }

  /** Counts a request that may be refunded. The headers report it only if it is rejected. */
  async chargeUnreported(res: ServerResponse, { name, key, limit, ttl }: Charge): Promise<LimitRecord> {
    const record = await this.storage.increment(key, ttl, limit, ttl, name);
    if (record.isBlocked) reject(res, limit, record);
    return record;
  }

  /** Counts a request for its IP address. */
  async chargeAddress(req: IncomingMessage, res: ServerResponse): Promise<Charge | undefined> {
    if (!this.rates) return undefined;
    const charge = createCharge('address', req.inFlight.client.network, this.rates.address);
    await this.charge(res, charge);
    return charge;
  }

  /**
   * Runs a lookup of a client without a credential. It counts for the IP address and its networks when it
   * starts, and is refunded unless it finds nothing: the limit is the same for all lookups.
   */
  async lookUp<Found>(
    req: IncomingMessage,
    res: ServerResponse,
    find: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    if (!this.rates) return find();
    this.check('misses', req, res);
    const charge = createCharge('misses', `address ${req.inFlight.client.network}`, this.rates.misses);
    await this.chargeUnreported(res, charge);
    let isMissing = false;
    try {
      const found = await find();
      isMissing = found === undefined;
      return found;
    } finally {
      void (isMissing ? this.failed('misses', req) : this.refund(charge));
    }
  }

  async refund(charge: Charge): Promise<void> {
    await this.storage.add(charge, -1);
  }

  /** Rejects an attempt from a network with too many failed ones. */
  check(attempts: Attempts, req: IncomingMessage, res: ServerResponse): void {
    for (const network of this.networks(attempts, req)) {
      const record = this.storage.blocked(network);
      if (record) reject(res, network.limit, record);
    }
  }

  /** Counts a failed attempt for the networks around the IP address, also beyond their limits. */
  async failed(attempts: Attempts, req: IncomingMessage): Promise<void> {
    await Promise.all(this.networks(attempts, req).map((network) => this.storage.add(network, 1)));
  }

  private networks(attempts: Attempts, { inFlight: { client } }: IncomingMessage): Charge[] {
    if (!this.rates) return [];
    const { count, period_ms } = this.rates[attempts];
    return (['site', 'provider'] as const).map((network) =>
      createCharge(`${attempts}-networks`, `${network}:${client.networkPrefix(network)}`, {
        count: count * ADDRESSES_PER_NETWORK[network],
        period_ms,
      }),
    );
  }
}

function reject(res: ServerResponse, limit: number, record: LimitRecord): never {
  res.setRateLimit(limit, 0, record.timeToExpire);
  throw new ApiError(429, ['rate limit exceeded'], { 'Retry-After': String(record.timeToBlockExpire) });
}
