import { Module } from '@nestjs/common';
import { ThrottlerModule, type ThrottlerOptions } from '@nestjs/throttler';
import type { Request } from 'express';
import { Clock } from '../config/clock';
import { type RateLimits, parseRateLimits } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { MetricsRegistry } from '../observability/metrics-registry';
import { MINUTE_MS } from '../formats/durations';
import { ObservabilityModule } from '../observability/observability.module';
import { MemoryStorage } from './memory-storage';
import { hasOwnLimit } from './rate-limits.decorators';
import { RateLimitsService } from './rate-limits.service';
import { RedisStorage } from './redis-storage';

const OTHERS = ['misses', 'address-networks', 'misses-networks', 'sign-in-networks', 'stored-responses'];

const throttler = (name: string, limit: number, ttl: number): ThrottlerOptions => ({
  name,
  limit,
  ttl,
  skipIf: (context) =>
    context.switchToHttp().getRequest<Request>().rateLimitKeys?.[name] === undefined ||
    (limit === Infinity && !hasOwnLimit(context.getHandler(), context.getClass())),
  getTracker: (req) => (req as Request).rateLimitKeys![name]!,
});

/**
 * Creates one throttler for each limit except `misses`, which LookupLimitGuard enforces. `default` applies
 * only to handlers with `@Throttle({ default: ... })`.
 */
const createThrottlers = ({ misses: _, ...rates }: RateLimits) => [
  ...Object.entries(rates).map(([name, { count, period_ms }]) => throttler(name, count, period_ms)),
  throttler('default', Infinity, MINUTE_MS),
];

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [ObservabilityModule],
      inject: [Settings, Clock, MetricsRegistry],
      useFactory: async ({ RATE_LIMIT, REDIS_URL }: Settings, clock: Clock, metrics: MetricsRegistry) => {
        const rates = parseRateLimits(RATE_LIMIT);
        // RateLimitGuard uses no throttlers if RATE_LIMIT is off, but their names are checked anyway.
        const throttlers = createThrottlers(rates ?? parseRateLimits('')!);
        const names = rates ? [...throttlers.map(({ name }) => name!), ...OTHERS] : [];
        const storage =
          rates && REDIS_URL
            ? await RedisStorage.open(REDIS_URL, clock, metrics, names)
            : new MemoryStorage(clock, metrics, names);
        return { throttlers, storage };
      },
    }),
  ],
  providers: [RateLimitsService],
  exports: [RateLimitsService, ThrottlerModule],
})
export class RateLimitsModule {}
