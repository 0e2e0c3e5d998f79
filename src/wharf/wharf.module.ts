import { Module } from '@nestjs/common';
import { HttpModule } from '../platform/server/http.module';
import { BuildChanges } from './build-changes';
import { BuildsService } from './builds.service';
import { LatestShortcut } from './latest-shortcut';
import { WharfController } from './wharf.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [HttpModule, RateLimitsModule],
  controllers: [WharfController],
  providers: [BuildsService, BuildChanges, LatestShortcut],
  exports: [LatestShortcut],
})
export class WharfModule {}
