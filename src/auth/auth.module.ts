import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKey } from './api-key.entity';
import { ApiKeyLookup, ApiKeyUses } from './api-key-lookup';
import { ApiKeysService } from './api-keys.service';
import { Audit } from './audit';
import { AuditEventRow } from './audit-event.entity';
import { BearerStrategy } from './bearer.strategy';
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
  constructor(private readonly modules: ModulesContainer) {}

  onModuleInit(): void {
    requireAccess(this.modules);
  }
}
