import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKey } from './api-key.entity';
import { ApiKeyLookup, ApiKeyUses } from './api-key-lookup';
import { ApiKeysService } from './api-keys.service';
import { Audit } from './audit';
import { AuditEventRow } from './audit-event.entity';
import { BearerStrategy } from './bearer.strategy';
import { ExpiredRows } from '../platform/database/expired-rows';
import { KeyChanges } from './key-changes';
import { OperatorEvents } from '../operator/tokens/operator-events';
import { OperatorToken } from '../operator/tokens/operator-token.entity';
import { OperatorTokensService } from '../operator/tokens/operator-tokens.service';
import { requireAccess } from './routes';
import { SigningKey } from './signing-key.entity';
import { SigningKeysService } from './signing-keys.service';
import { TokenRevocations } from './token-revocations.service';
import { TokensService } from './tokens.service';

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey, AuditEventRow, OperatorToken, SigningKey])],
  providers: [
    ApiKeyLookup,
    ApiKeyUses,
    ApiKeysService,
    Audit,
    KeyChanges,
    OperatorEvents,
    OperatorTokensService,
    SigningKeysService,
    TokenRevocations,
    TokensService,
    BearerStrategy,
  ],
  exports: [
    ApiKeysService,
    Audit,
    OperatorEvents,
    OperatorTokensService,
    SigningKeysService,
    TokenRevocations,
    TokensService,
    BearerStrategy,
  ],
})
export class AuthModule implements OnModuleInit {
  constructor(
    private readonly modules: ModulesContainer,
    expired: ExpiredRows,
  ) {
    // Users see their own expired keys for a month.
    expired.register(
      'api_keys',
      'id',
      `expires_at < now() - interval '1 day' AND (grant_id IS NOT NULL OR expires_at < now() - interval '30 days')`,
    );
  }

  onModuleInit(): void {
    requireAccess(this.modules);
  }
}
