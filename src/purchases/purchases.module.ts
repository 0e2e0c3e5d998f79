import { Module } from '@nestjs/common';
import { DownloadKeysService } from './download-keys.service';
import { GameSalesController } from './game-sales.controller';
import { GameSalesService } from './game-sales.service';
import { OwnedKeysService } from './owned-keys.service';
import { OwnershipController } from './ownership.controller';
import { OwnershipService } from './ownership.service';
import { PurchasesController } from './purchases.controller';
import { PurchasesService } from './purchases.service';

@Module({
  controllers: [GameSalesController, OwnershipController, PurchasesController],
  providers: [DownloadKeysService, GameSalesService, OwnedKeysService, OwnershipService, PurchasesService],
  exports: [DownloadKeysService, GameSalesService, OwnedKeysService, PurchasesService],
})
export class PurchasesModule {}
