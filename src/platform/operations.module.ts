import { Module } from '@nestjs/common';
import { ApiDescription } from './openapi/api-description';
import { HealthController } from './lifecycle/health.controller';
import { HttpModule } from './http/http.module';
import { MetricsService } from './observability/metrics.service';
import { ReferenceController } from './openapi/reference.controller';
import { TracingService } from './observability/tracing.service';

@Module({
  imports: [HttpModule],
  controllers: [HealthController, ReferenceController],
  providers: [ApiDescription, MetricsService, TracingService],
  exports: [ApiDescription, MetricsService],
})
export class OperationsModule {}
