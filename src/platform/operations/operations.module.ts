import { Module } from '@nestjs/common';
import { ApiDescription } from '../openapi/api-description';
import { HealthController } from './health.controller';
import { ServerModule } from '../server/server.module';
import { MetricsService } from './metrics.service';
import { ReferenceController } from '../openapi/reference.controller';
import { TracingService } from './tracing.service';

@Module({
  imports: [ServerModule],
  controllers: [HealthController, ReferenceController],
  providers: [ApiDescription, MetricsService, TracingService],
  exports: [ApiDescription, MetricsService],
})
export class OperationsModule {}
