import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module';
import { OperationsModule } from '../../platform/operations/operations.module';
import { OperationsController } from './operations.controller';
import { OperatorEvents } from './operator-events';
import { OperatorPathsMiddleware } from './operator-paths.middleware';
import { OperatorToken } from './operator-token.entity';
import { OperatorTokensService } from './operator-tokens.service';
import { RateLimitsModule } from '../../platform/limits/rate-limits.module';

@Module({
  imports: [AuthModule, OperationsModule, RateLimitsModule, TypeOrmModule.forFeature([OperatorToken])],
  controllers: [OperationsController],
  providers: [OperatorEvents, OperatorPathsMiddleware, OperatorTokensService],
  exports: [OperatorEvents, OperatorTokensService],
})
export class TokensModule {}
