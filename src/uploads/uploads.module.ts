import { Logger, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { AuthModule } from '../auth/auth.module';
import { ServerModule } from '../platform/server/server.module';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { ExpiredRows } from '../platform/database/expired-rows';
import { ServiceUrl } from '../platform/server/service-url';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { BuildFolders } from './build-folders';
import { BuildPruning } from './build-pruning.service';
import { BuildSignatures } from './build-signatures.service';
import { ChannelsController } from './channels.controller';
import { ChannelsService } from './channels.service';
import { DownloadCounts } from './download-counts.service';
import { DownloadableBuilds } from './downloadable-builds.service';
import { DownloadsService } from './downloads.service';
import { FileQuota } from './file-quota.service';
import { FileResponses } from './file-responses';
import { FilesController } from './files.controller';
import { FileUploadJobs } from './file-upload-jobs.service';
import { FileUploadsService } from './file-uploads.service';
import { FilesService } from './files.service';
import { UploadSessionsController } from './sessions/upload-sessions.controller';
import { UploadParts } from './sessions/upload-parts.service';
import { UploadSessions } from './sessions/upload-sessions.service';
import { createStorage } from './storage/create-storage';
import { FileStorage } from './storage/file-storage';
import { NoStorage, NOT_CONFIGURED } from './storage/no-storage';
import { UnusedFiles } from './unused-files.service';
import { UploadEditsService } from './upload-edits.service';
import { UploadsController } from './uploads.controller';
import { UploadsService } from './uploads.service';

@Module({
  imports: [AuthModule, ServerModule, IdempotencyModule],
  controllers: [UploadsController, ChannelsController, FilesController, UploadSessionsController],
  providers: [
    UploadsService,
    DownloadableBuilds,
    DownloadsService,
    DownloadCounts,
    ChannelsService,
    FilesService,
    BuildFolders,
    BuildSignatures,
    BuildPruning,
    FileResponses,
    UploadSessions,
    UploadParts,
    UnusedFiles,
    UploadEditsService,
    FileUploadJobs,
    FileUploadsService,
    FileQuota,
    { provide: FileStorage, useFactory: createStorage, inject: [Settings, Clock, ServiceUrl] },
  ],
  exports: [
    UploadsService,
    DownloadsService,
    ChannelsService,
    FilesService,
    BuildFolders,
    BuildSignatures,
    BuildPruning,
    FileStorage,
    UploadSessions,
    UploadParts,
    UnusedFiles,
    UploadEditsService,
    FileUploadsService,
    FileQuota,
  ],
})
export class UploadsModule implements OnApplicationBootstrap {
  constructor(
    expired: ExpiredRows,
    private readonly settings: Settings,
    private readonly storage: FileStorage,
    private readonly host: HttpAdapterHost,
  ) {
    // Upload sessions expire after a day.
    expired.register('file_uploads', 'id', `created_at < now() - interval '25 hours'`);
    expired.register('counted_downloads', 'uuid', `counted_at < now() - interval '7 days'`);
  }

  onApplicationBootstrap(): void {
    // Commands have no routes.
    if (!this.host.httpAdapter || this.settings.NODE_ENV !== 'production') return;
    if (this.storage instanceof NoStorage)
      new Logger('Files').warn(`${NOT_CONFIGURED} Until then, downloads of stored files respond with 501.`);
  }
}
