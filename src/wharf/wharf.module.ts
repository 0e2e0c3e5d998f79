import { Module } from '@nestjs/common';
import { ServerModule } from '../platform/server/server.module';
import { BuildsListService } from './builds-list.service';
import { BuildsService } from './builds.service';
import { NewestBuilds } from './newest-builds';
import { WharfController } from './wharf.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [ServerModule, RateLimitsModule],
  controllers: [WharfController],
  providers: [BuildsListService, BuildsService, NewestBuilds],
  exports: [BuildsListService, NewestBuilds],
})
export class WharfModule {}
