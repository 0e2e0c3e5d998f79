import { Global, Module } from '@nestjs/common';
import { ApiDescription } from './api-description';
import { HealthController } from './health.controller';
import { MetricsController } from './metrics.controller';
import { MetricsService } from './metrics.service';
import { RateLimitGuard, UnroutedLimit } from './rate-limit.guard';
import { RateLimitsModule } from './rate-limits.module';
import { ReferenceController } from './reference.controller';
import { TracingService } from './tracing.service';

@Global()
@Module({
  imports: [RateLimitsModule],
  controllers: [HealthController, MetricsController, ReferenceController],
  providers: [ApiDescription, RateLimitGuard, MetricsService, TracingService, UnroutedLimit],
  exports: [ApiDescription, RateLimitsModule, RateLimitGuard],
})
export class OperationsModule {}
