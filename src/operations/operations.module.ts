import { Global, Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
import { ApiDescription } from './api-description';
import { HealthController } from './health.controller';
import { MetricsService } from './metrics.service';
import { RateLimitGuard } from './rate-limit.guard';
import { RateLimitsModule } from './rate-limits.module';
import { RateLimitsService } from './rate-limits.service';
import { ReferenceController } from './reference.controller';
import { TracingService } from './tracing.service';
import { UnroutedLimit } from './unrouted-limit';

@Global()
@Module({
  imports: [
    RateLimitsModule,
    ThrottlerModule.forRootAsync({
      imports: [RateLimitsModule],
      inject: [RateLimitsService],
      useFactory: (limits: RateLimitsService) => ({
        throttlers: Object.entries(limits.limits ?? {}).map(([name, { count, period_ms }]) => ({
          name,
          limit: count,
          ttl: period_ms,
        })),
        storage: limits,
      }),
    }),
  ],
  controllers: [HealthController, ReferenceController],
  providers: [ApiDescription, RateLimitGuard, MetricsService, TracingService, UnroutedLimit],
  exports: [RateLimitsModule, RateLimitGuard],
})
export class OperationsModule {}
