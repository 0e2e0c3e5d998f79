import { Module } from '@nestjs/common';
import { HttpModule } from '../platform/http/http.module';
import { BuildChanges } from './build-changes';
import { BuildsService } from './builds.service';
import { LatestShortcut } from './latest-shortcut';
import { WharfController } from './wharf.controller';
import { RateLimitsModule } from '../platform/rate-limits/rate-limits.module';

@Module({
  imports: [HttpModule, RateLimitsModule],
  controllers: [WharfController],
  providers: [BuildsService, BuildChanges, LatestShortcut],
  exports: [LatestShortcut],
})
export class WharfModule {}
