import { Module } from '@nestjs/common';
import { DownloadKeysService } from './download-keys.service';
import { GameSalesController } from './game-sales.controller';
import { GameSalesService } from './game-sales.service';
import { LibraryService } from './library.service';
import { OwnedKeysService } from './owned-keys.service';
import { OwnershipController } from './ownership.controller';
import { OwnershipService } from './ownership.service';
import { PurchasesController } from './purchases.controller';
import { SellerSalesService } from './seller-sales.service';
import { PurchasesService } from './purchases.service';
import { RateLimitsModule } from '../platform/rate-limits/rate-limits.module';

@Module({
  imports: [RateLimitsModule],
  controllers: [GameSalesController, OwnershipController, PurchasesController],
  providers: [
    DownloadKeysService,
    GameSalesService,
    LibraryService,
    OwnedKeysService,
    OwnershipService,
    PurchasesService,
    SellerSalesService,
  ],
  exports: [
    DownloadKeysService,
    GameSalesService,
    LibraryService,
    OwnedKeysService,
    PurchasesService,
    SellerSalesService,
  ],
})
export class PurchasesModule {}
