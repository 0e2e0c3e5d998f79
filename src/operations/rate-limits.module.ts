import { Module } from '@nestjs/common';
import { rateLimitsOf } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { RateLimitsService } from './rate-limits.service';
import { SharedCounters } from './shared-counters';

@Module({
  providers: [
    RateLimitsService,
    {
      provide: SharedCounters,
      inject: [Settings],
      useFactory: ({ RATE_LIMIT, REDIS_URL }: Settings) =>
        REDIS_URL && rateLimitsOf(RATE_LIMIT) ? SharedCounters.open(REDIS_URL) : null,
    },
  ],
  exports: [RateLimitsService],
})
export class RateLimitsModule {}
