import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { BundlesController } from './bundles.controller';
import { BundlesService } from './bundles.service';

@Module({
  imports: [AuthModule, IdempotencyModule],
  controllers: [BundlesController],
  providers: [BundlesService],
})
export class BundlesModule {}
