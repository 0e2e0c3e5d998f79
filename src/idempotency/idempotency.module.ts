import { Module } from '@nestjs/common';
import { ExpiredRows } from '../platform/database/expired-rows';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';
import { IdempotencyService } from './idempotency.service';

@Module({ imports: [RateLimitsModule], providers: [IdempotencyService], exports: [IdempotencyService] })
export class IdempotencyModule {
  constructor(expired: ExpiredRows) {
    expired.register('idempotency_keys', 'credential, key_hash', `created_at < now() - interval '24 hours'`);
  }
}
