import { Module } from '@nestjs/common';
import { MetricsRegistry } from './metrics-registry';
import { RequestLog } from './request-log';

@Module({ providers: [MetricsRegistry, RequestLog], exports: [MetricsRegistry, RequestLog] })
export class ObservabilityModule {}
