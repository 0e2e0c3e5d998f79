import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module';
import { PurchasesModule } from '../purchases/purchases.module';
import { CredentialsController } from './credentials.controller';
import { CredentialsService } from './credentials.service';
import { PublishedKeysController } from './published-keys.controller';

@Module({
  imports: [AuthModule, PurchasesModule],
  controllers: [CredentialsController, PublishedKeysController],
  providers: [CredentialsService],
})
export class CredentialsModule {}
