import { Module } from '@nestjs/common';
import { EventsModule } from '../events/events.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { ServerModule } from '../platform/server/server.module';
import { UploadsModule } from '../uploads/uploads.module';
import { BuildEventsService } from './build-events.service';
import { BuildFailures } from './build-failures.service';
import { BuildJobs } from './build-jobs.service';
import { BUILD_EVENTS } from './build-messages';
import { BuildQueue } from './build-queue.service';
import { BuildMetrics } from './build-metrics';
import { ProfileBuildsController, PushesController } from './pushes.controller';
import { PushedFilesService } from './pushed-files.service';
import { PushesService } from './pushes.service';

@Module({
  imports: [ServerModule, IdempotencyModule, UploadsModule, EventsModule.forFeature(BUILD_EVENTS)],
  controllers: [PushesController, ProfileBuildsController],
  providers: [
    PushesService,
    PushedFilesService,
    BuildEventsService,
    BuildFailures,
    BuildJobs,
    BuildQueue,
    BuildMetrics,
  ],
  exports: [PushesService],
})
export class PushModule {}
