import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OperationsController } from './operations.controller';
import { OperatorEvents } from './operator-events';
import { OperatorToken } from './operator-token.entity';
import { OperatorTokensService } from './operator-tokens.service';

@Module({
  imports: [TypeOrmModule.forFeature([OperatorToken])],
  controllers: [OperationsController],
  providers: [OperatorEvents, OperatorTokensService],
  exports: [OperatorEvents, OperatorTokensService],
})
export class TokensModule {}
