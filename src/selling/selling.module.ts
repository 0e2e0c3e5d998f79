import { Module } from '@nestjs/common';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { SalesController } from './sales.controller';
import { SalesService } from './sales.service';

@Module({ imports: [IdempotencyModule], controllers: [SalesController], providers: [SalesService] })
export class SellingModule {}
