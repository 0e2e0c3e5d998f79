import { Controller, Get, Req, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { StoreLinks } from '../platform/config/store-links';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { IdempotencyKey } from '../idempotency/idempotency-key';
import { OncePerKey, type RetryKey } from '../idempotency/idempotency.service';
import { DownloadableBuilds } from './downloadable-builds.service';
import { DownloadsService } from './downloads.service';
import {
  buildResponse,
  BuildsResponse,
  buildWithFiles,
  buildWithOwner,
  OneBuildResponse,
  UpgradePathResponse,
} from './build.dto';
import { RedirectsToFile } from './redirects-to-file';
import {
  BuildRequest,
  DownloadBuildRequest,
  UpgradePathRequest,
  DownloadSessionResponse,
  DownloadUploadRequest,
  UploadRequest,
  UploadsRequest,
} from './download.dto';
import { OneUploadResponse, uploadResponse, UploadsResponse } from './upload.dto';
import { UploadsService } from './uploads.service';

const MUST_BUY = 'you must buy this game to download';

@Controller()
@ApiTags('Downloads')
export class UploadsController {
  constructor(
    private readonly uploads: UploadsService,
    private readonly downloadable: DownloadableBuilds,
    private readonly downloads: DownloadsService,
    private readonly links: StoreLinks,
  ) {}

  @Get('games/:game_id/uploads')
  @ApiOperation({
    summary: "List a game's files",
    description:
      'Lists the files that the user may download: demos and free games, and all files of owned games. At most 1,000.',
  })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: UploadsResponse })
  @Fails(404, 'invalid game', 'invalid download_key_id')
  async list(
    @Params() request: UploadsRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<UploadsResponse> {
    return { uploads: (await this.uploads.list(request, credential)).map(uploadResponse) };
  }

  @Post('games/:game_id/download-sessions')
  @ApiOperation({
    summary: 'Start a download session',
    description:
      'All requests with the same `uuid` count as one download, regardless of how many connections a client opens.',
  })
  @Scopes('game:view:uploads')
  @OncePerKey()
  @ApiOkResponse({ type: DownloadSessionResponse })
  @Fails(404, 'invalid game', 'invalid download_key_id')
  session(
    @Params() request: UploadsRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<DownloadSessionResponse> {
    return this.downloads.session(request, credential, key);
  }

  @Get('uploads/:upload_id')
  @ApiOperation({ summary: 'Get an upload' })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: OneUploadResponse })
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid upload', 'invalid download_key_id')
  async one(
    @Params() request: UploadRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OneUploadResponse> {
    return { upload: uploadResponse(await this.uploads.one(request, credential)) };
  }

  @Get('uploads/:upload_id/builds')
  @ApiOperation({
    summary: "List the builds of an upload's channel",
    description: 'Completed builds, newest first, at most 200. Editors of the game see builds in all states.',
  })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: BuildsResponse })
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid upload', 'invalid download_key_id')
  async builds(
    @Params() request: UploadRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<BuildsResponse> {
    return { builds: (await this.uploads.builds(request, credential)).map(buildResponse) };
  }

  @Get('builds/:build_id')
  @ApiOperation({ summary: 'Get a build and its files' })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: OneBuildResponse })
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid build', 'invalid download_key_id')
  async build(
    @Params() request: BuildRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OneBuildResponse> {
    return { build: buildWithOwner(await this.downloadable.one(request, credential), this.links) };
  }

  @Get('builds/:build_id/upgrade-paths/:target_build_id')
  @ApiOperation({
    summary: 'List the builds that update a game',
    description:
      'The patch of each build after the first updates the build before it. At most 50 builds. Without a path, update from the signature and the archive of the target.',
  })
  @Scopes('game:view:uploads')
  @ApiOkResponse({ type: UpgradePathResponse })
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid build', 'invalid upgrade path', 'invalid download_key_id')
  async upgradePath(
    @Params() request: UpgradePathRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<UpgradePathResponse> {
    return {
      upgrade_path: {
        builds: (await this.downloadable.upgradePath(request, credential)).map(buildWithFiles),
      },
    };
  }

  @Get('uploads/:upload_id/download')
  @ApiOperation({ summary: 'Download an upload', description: 'Redirects to a signed URL that expires.' })
  @Scopes('game:view:uploads')
  @RedirectsToFile()
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid upload', 'invalid download_key_id')
  async download(
    @Params() request: DownloadUploadRequest,
    @CurrentCredential() credential: Credential,
    @Req() req: Request,
  ): Promise<{ url: string }> {
    return { url: await this.downloads.upload(request, credential, req) };
  }

  @Get('builds/:build_id/download/:file_type/:sub_type')
  @ApiOperation({
    summary: 'Download a file of a build',
    description:
      'Redirects to a signed URL that expires. `archive` is what players install; `patch` updates the parent build, and `signature` has a hash of each block.',
  })
  @Scopes('game:view:uploads')
  @RedirectsToFile()
  @Fails(403, MUST_BUY)
  @Fails(404, 'invalid build', 'invalid build file', 'invalid download_key_id')
  async downloadBuild(
    @Params() request: DownloadBuildRequest,
    @CurrentCredential() credential: Credential,
    @Req() req: Request,
  ): Promise<{ url: string }> {
    return { url: await this.downloads.build(request, credential, req) };
  }
}
