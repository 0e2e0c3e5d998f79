import { Module } from '@nestjs/common';
import { DownloadKeysService } from './download-keys.service';
import { PurchasesController } from './purchases.controller';
import { PurchasesService } from './purchases.service';

@Module({
  controllers: [PurchasesController],
  providers: [DownloadKeysService, PurchasesService],
  exports: [DownloadKeysService, PurchasesService],
})
export class PurchasesModule {}
