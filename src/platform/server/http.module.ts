import { Module } from '@nestjs/common';
import { Descriptors } from './descriptors';
import { RequestGate } from './request-gate';
import { LongLists } from '../output/long-lists';
import { MetricsRegistry } from '../observability/metrics-registry';
import { ServiceUrl } from './service-url';
import { RequestLog } from '../observability/request-log';

const SERVICES = [Descriptors, LongLists, MetricsRegistry, ServiceUrl, RequestGate, RequestLog];

@Module({ providers: SERVICES, exports: SERVICES })
export class HttpModule {}
