import { Module } from '@nestjs/common';
import { HttpModule } from '../platform/server/http.module';
import { BuildsService } from './builds.service';
import { NewestBuilds } from './newest-builds';
import { WharfController } from './wharf.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [HttpModule, RateLimitsModule],
  controllers: [WharfController],
  providers: [BuildsService, NewestBuilds],
  exports: [NewestBuilds],
})
export class WharfModule {}
