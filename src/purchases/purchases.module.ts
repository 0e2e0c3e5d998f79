import { Module } from '@nestjs/common';
import { CreatedKeysController } from './keys/created-keys.controller';
import { CreatedKeysService } from './keys/created-keys.service';
import { FilteredKeysService } from './keys/filtered-keys.service';
import { AuthModule } from '../auth/auth.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { TokensModule } from '../operator/tokens/tokens.module';
import { EventsModule } from '../events/events.module';
import { PURCHASE_EVENTS } from './messages/sale-messages';
import { DownloadKeysService } from './keys/download-keys.service';
import { DownloadKeysController } from './keys/download-keys.controller';
import { GameSalesController } from './sales/game-sales.controller';
import { GameSalesService } from './sales/game-sales.service';
import { LibraryService } from './library/library.service';
import { OwnershipController } from './library/ownership.controller';
import { OwnershipService } from './library/ownership.service';
import { PurchasesController } from './purchases.controller';
import { BuyersService } from './sales/buyers.service';
import { SalesListService } from './sales/sales-list.service';
import { SalesReportService } from './sales/sales-report.service';
import { SellerSalesService } from './sales/seller-sales.service';
import { PurchasesService } from './purchases.service';
import { SalesController } from './sales/sales.controller';
import { SalesService } from './sales/sales.service';

const SERVICES = [
  BuyersService,
  CreatedKeysService,
  FilteredKeysService,
  DownloadKeysService,
  GameSalesService,
  LibraryService,
  OwnershipService,
  PurchasesService,
  SalesListService,
  SalesReportService,
  SalesService,
  SellerSalesService,
];

@Module({
  imports: [AuthModule, IdempotencyModule, TokensModule, EventsModule.forFeature(PURCHASE_EVENTS)],
  controllers: [
    OwnershipController,
    PurchasesController,
    DownloadKeysController,
    GameSalesController,
    CreatedKeysController,
    SalesController,
  ],
  providers: SERVICES,
  exports: SERVICES,
})
export class PurchasesModule {}
