import { Global, Module } from '@nestjs/common';
import { rateLimitsOf } from '../config/rate-limits';
import { Settings } from '../config/settings';
import { ApiDescription } from './api-description';
import { HealthController } from './health.controller';
import { MetricsController } from './metrics.controller';
import { MetricsService } from './metrics.service';
import { RateLimitGuard, UnroutedLimit } from './rate-limit.guard';
import { RateLimitsService } from './rate-limits.service';
import { ReferenceController } from './reference.controller';
import { SharedCounters } from './shared-counters';
import { TracingService } from './tracing.service';

@Global()
@Module({
  controllers: [HealthController, MetricsController, ReferenceController],
  providers: [
    ApiDescription,
    RateLimitGuard,
    RateLimitsService,
    MetricsService,
    TracingService,
    UnroutedLimit,
    {
      provide: SharedCounters,
      inject: [Settings],
      useFactory: ({ RATE_LIMIT, REDIS_URL }: Settings) =>
        REDIS_URL && rateLimitsOf(RATE_LIMIT) ? SharedCounters.open(REDIS_URL) : null,
    },
  ],
  exports: [ApiDescription, RateLimitsService, RateLimitGuard],
})
export class OperationsModule {}
