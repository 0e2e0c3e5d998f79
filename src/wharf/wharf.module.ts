import { Module } from '@nestjs/common';
import { BuildsService } from './builds.service';
import { LatestShortcut } from './latest-shortcut';
import { WharfController } from './wharf.controller';

@Module({
  controllers: [WharfController],
  providers: [BuildsService, LatestShortcut],
  exports: [BuildsService],
})
export class WharfModule {}
