import { Module } from '@nestjs/common';
import { CollectionsModule } from '../collections/collections.module';
import { SalesController } from './sales.controller';
import { SalesService } from './sales.service';

@Module({ imports: [CollectionsModule], controllers: [SalesController], providers: [SalesService] })
export class SellingModule {}
