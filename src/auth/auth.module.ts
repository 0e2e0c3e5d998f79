import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKey } from './api-key.entity';
import { ApiKeyLookup } from './api-key-lookup';
import { ApiKeyUses } from './api-key-uses';
import { ApiKeysService } from './api-keys.service';
import { Audit } from './audit';
import { AuditEventRow } from './audit-event.entity';
import { BearerStrategy } from './bearer.strategy';
import { KeyChanges } from './key-changes';
import { OperatorEvents } from './operator-events';
import { OperatorToken } from './operator-token.entity';
import { OperatorTokensService } from './operator-tokens.service';
import { requireAccess } from './routes';
import { SigningKey } from './signing-key.entity';
import { SigningKeysService } from './signing-keys.service';
import { TokenRevocations } from './token-revocations.service';
import { TokensService } from './tokens.service';
import { VerifiedCredentials } from './verified-credentials';

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey, AuditEventRow, OperatorToken, SigningKey])],
  providers: [
    ApiKeyLookup,
    ApiKeyUses,
    ApiKeysService,
    Audit,
    BearerStrategy,
    KeyChanges,
    OperatorEvents,
    OperatorTokensService,
    SigningKeysService,
    TokenRevocations,
    TokensService,
    VerifiedCredentials,
  ],
  exports: [
    ApiKeysService,
    Audit,
    BearerStrategy,
    OperatorEvents,
    OperatorTokensService,
    SigningKeysService,
    TokenRevocations,
    TokensService,
    VerifiedCredentials,
  ],
})
export class AuthModule implements OnModuleInit {
  constructor(private readonly modules: ModulesContainer) {}

  onModuleInit(): void {
    requireAccess(this.modules);
  }
}
