import { Module } from '@nestjs/common';
import { BuildChanges } from './build-changes';
import { BuildsService } from './builds.service';
import { LatestShortcut } from './latest-shortcut';
import { WharfController } from './wharf.controller';

@Module({
  controllers: [WharfController],
  providers: [BuildsService, BuildChanges, LatestShortcut],
  exports: [BuildsService, LatestShortcut],
})
export class WharfModule {}
