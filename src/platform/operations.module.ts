import { Global, Module } from '@nestjs/common';
import { rateLimitsOf } from './config/rate-limits';
import { Settings } from './config/settings';
import { ApiDescription } from './openapi/api-description';
import { HealthController } from './lifecycle/health.controller';
import { Startup } from './lifecycle/startup';
import { MetricsService } from './observability/metrics.service';
import { RateLimitGuard, UnroutedLimit } from './rate-limits/rate-limit.guard';
import { RateLimitsService } from './rate-limits/rate-limits.service';
import { ReferenceController } from './openapi/reference.controller';
import { SharedCounters } from './rate-limits/shared-counters';
import { TracingService } from './observability/tracing.service';

@Global()
@Module({
  controllers: [HealthController, ReferenceController],
  providers: [
    ApiDescription,
    RateLimitGuard,
    RateLimitsService,
    MetricsService,
    TracingService,
    Startup,
    UnroutedLimit,
    {
      provide: SharedCounters,
      inject: [Settings],
      useFactory: ({ RATE_LIMIT, REDIS_URL }: Settings) =>
        REDIS_URL && rateLimitsOf(RATE_LIMIT) ? SharedCounters.open(REDIS_URL) : null,
    },
  ],
  exports: [ApiDescription, MetricsService, RateLimitsService, RateLimitGuard],
})
export class OperationsModule {}
