import { randomUUID } from 'node:crypto';
import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { User } from './accounts/user.entity';
import { ApiKey } from './keys/api-key.entity';
import { ApiKeyRequests, COUNTED_DAYS } from './keys/api-key-requests.entity';
import { ApiKeyLookup } from './keys/api-key-lookup';
import { ApiKeyUses } from './keys/api-key-uses';
import { ApiKeysService } from './keys/api-keys.service';
import { Audit } from '../audit/audit';
import { AuditEventRow } from '../audit/audit-event.entity';
import { BearerStrategy } from './guards/bearer.strategy';
import { CredentialCache } from './keys/credential-cache';
import { ExpiredRows } from '../platform/database/expired-rows';
import { ServerModule } from '../platform/server/server.module';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';
import { ProofsService } from './jwt/proofs.service';
import { SigningKey } from './jwt/signing-key.entity';
import { SigningKeysService } from './jwt/signing-keys.service';
import { StartupChecks } from './guards/startup-checks';
import { TokensService } from './jwt/tokens.service';

@Module({
  imports: [
    // Passport finds strategies by name for the whole process, so each app needs its own name.
    PassportModule.registerAsync({ useFactory: () => ({ defaultStrategy: `bearer ${randomUUID()}` }) }),
    ServerModule,
    RateLimitsModule,
    TypeOrmModule.forFeature([ApiKey, ApiKeyRequests, AuditEventRow, SigningKey, User]),
  ],
  providers: [
    ApiKeyLookup,
    ApiKeyUses,
    ApiKeysService,
    Audit,
    BearerStrategy,
    CredentialCache,
    ProofsService,
    SigningKeysService,
    StartupChecks,
    TokensService,
  ],
  exports: [
    ServerModule,
    PassportModule,
    RateLimitsModule,
    ApiKeysService,
    Audit,
    BearerStrategy,
    CredentialCache,
    ProofsService,
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
