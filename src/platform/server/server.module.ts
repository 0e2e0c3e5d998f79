import { Module } from '@nestjs/common';
import { ListStreams } from '../output/list-streams';
import { RateLimitsModule } from '../limits/rate-limits.module';
import { ObservabilityModule } from '../observability/observability.module';
import { Descriptors } from './descriptors';
import { KeyPages } from './key-pages';
import { RequestGate } from './request-gate';
import { ServiceUrl } from './service-url';
import { UnmatchedRequests } from './unmatched-requests';

const SERVICES = [Descriptors, ListStreams, KeyPages, ServiceUrl, RequestGate];

@Module({
  imports: [ObservabilityModule, RateLimitsModule],
  providers: [...SERVICES, UnmatchedRequests],
  exports: [...SERVICES, ObservabilityModule],
})
export class ServerModule {}
