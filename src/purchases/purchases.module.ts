import { Module } from '@nestjs/common';
import { CreatedKeysController } from './created-keys.controller';
import { CreatedKeysService } from './created-keys.service';
import { AuthModule } from '../auth/auth.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { DownloadKeysService } from './download-keys.service';
import { GameSalesController } from './game-sales.controller';
import { GameSalesService } from './game-sales.service';
import { LibraryService } from './library.service';
import { OwnershipController } from './ownership.controller';
import { OwnershipService } from './ownership.service';
import { PurchasesController } from './purchases.controller';
import { SellerSalesService } from './seller-sales.service';
import { PurchasesService } from './purchases.service';

@Module({
  imports: [AuthModule, IdempotencyModule],
  controllers: [OwnershipController, PurchasesController, GameSalesController, CreatedKeysController],
  providers: [
    CreatedKeysService,
    DownloadKeysService,
    GameSalesService,
    LibraryService,
    OwnershipService,
    PurchasesService,
    SellerSalesService,
  ],
  exports: [
    CreatedKeysService,
    DownloadKeysService,
    GameSalesService,
    LibraryService,
    OwnershipService,
    PurchasesService,
    SellerSalesService,
  ],
})
export class PurchasesModule {}
