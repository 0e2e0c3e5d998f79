import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module';
import { User } from '../../auth/accounts/user.entity';
import { SignInModule } from '../../auth/sign-in/sign-in.module';
import { IdempotencyModule } from '../../idempotency/idempotency.module';
import { TokensModule } from '../tokens/tokens.module';
import { ErasureService } from './erasure.service';
import { ExportService } from './export.service';
import { PeopleController } from './people.controller';
import { People } from './person';

@Module({
  imports: [AuthModule, IdempotencyModule, SignInModule, TokensModule, TypeOrmModule.forFeature([User])],
  controllers: [PeopleController],
  providers: [People, ExportService, ErasureService],
  exports: [People, ExportService, ErasureService],
})
export class PeopleModule {}
