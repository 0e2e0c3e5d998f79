import { Module } from '@nestjs/common';
import { ServerModule } from '../platform/server/server.module';
import { BuildsService } from './builds.service';
import { NewestBuilds } from './newest-builds';
import { WharfController } from './wharf.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [ServerModule, RateLimitsModule],
  controllers: [WharfController],
  providers: [BuildsService, NewestBuilds],
  exports: [NewestBuilds],
})
export class WharfModule {}
