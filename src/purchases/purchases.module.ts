import { Module } from '@nestjs/common';
import { DownloadKeysService } from './download-keys.service';
import { OwnedKeysService } from './owned-keys.service';
import { OwnershipController } from './ownership.controller';
import { OwnershipService } from './ownership.service';
import { PurchasesController } from './purchases.controller';
import { PurchasesService } from './purchases.service';

@Module({
  controllers: [OwnershipController, PurchasesController],
  providers: [DownloadKeysService, OwnedKeysService, OwnershipService, PurchasesService],
  exports: [DownloadKeysService, OwnedKeysService, PurchasesService],
})
export class PurchasesModule {}
