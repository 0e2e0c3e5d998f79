import { randomUUID } from 'node:crypto';
import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { User } from './accounts/user.entity';
import { ApiKey } from './api-key.entity';
import { ApiKeyRequests, COUNTED_DAYS } from './api-key-requests.entity';
import { ApiKeyLookup } from './api-key-lookup';
import { ApiKeyUses } from './api-key-uses';
import { ApiKeysService } from './api-keys.service';
import { Audit } from './audit';
import { AuditEventRow } from './audit-event.entity';
import { BearerStrategy } from './bearer.strategy';
import { ExpiredRows } from '../platform/database/expired-rows';
import { HttpModule } from '../platform/http/http.module';
import { KeyChanges } from './key-changes';
import { RateLimitGuard } from './rate-limit.guard';
import { RateLimitsModule } from '../platform/rate-limits/rate-limits.module';
import { SigningKey } from './signing-key.entity';
import { SigningKeysService } from './signing-keys.service';
import { StartupChecks } from './startup-checks';
import { TokensService } from './tokens.service';

@Module({
  imports: [
    // The name under which Passport finds the strategy of this app: see BearerStrategy.
    PassportModule.registerAsync({ useFactory: () => ({ defaultStrategy: `bearer ${randomUUID()}` }) }),
    HttpModule,
    RateLimitsModule,
    TypeOrmModule.forFeature([ApiKey, ApiKeyRequests, AuditEventRow, SigningKey, User]),
  ],
  providers: [
    ApiKeyLookup,
    ApiKeyUses,
    ApiKeysService,
    Audit,
    KeyChanges,
    RateLimitGuard,
    SigningKeysService,
    StartupChecks,
    TokensService,
    BearerStrategy,
  ],
  exports: [
    HttpModule,
    PassportModule,
    ApiKeysService,
    Audit,
    RateLimitGuard,
    SigningKeysService,
    TokensService,
  ],
})
export class AuthModule {
  constructor(expired: ExpiredRows) {
    // Users see their own expired keys for a month.
    expired.register(
      'api_keys',
      'id',
      `expires_at < now() - interval '1 day' AND (grant_id IS NOT NULL OR expires_at < now() - interval '30 days')`,
    );
    expired.register(
      'api_key_requests',
      'api_key_id, day',
      `day <= (now() AT TIME ZONE 'UTC')::date - ${COUNTED_DAYS}`,
    );
  }
}
