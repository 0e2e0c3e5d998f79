import { Controller, Get, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { IdempotencyKey } from '../idempotency/idempotency-key';
import { IdempotencyService, OncePerKey, type RetryKey } from '../idempotency/idempotency.service';
import { Params } from '../platform/input/params.decorator';
import { SuccessResponse } from '../platform/output/success-response';
import { Fails } from '../platform/server/routes';
import { RedirectsToFile } from '../uploads/redirects-to-file';
import { BuildEventsService } from './build-events.service';
import {
  BuildEventsResponse,
  CreateBuildEventRequest,
  CreateBuildFileRequest,
  CreateBuildFileResponse,
  CreateBuildRequest,
  CreateBuildResponse,
  FailBuildRequest,
  FinishBuildFileRequest,
  OnePushedBuildResponse,
  OnePushedFileResponse,
  ProfileBuildsRequest,
  ProfileBuildsResponse,
  PushedBuildRequest,
  pushedBuildResponse,
  PushedFileRequest,
  PushedFilesResponse,
} from './push.dto';
import { PushedFilesService } from './pushed-files.service';
import { PushesService } from './pushes.service';

const FOR_EDITORS = 'Only for users who can edit the game.';

@ApiTags('Builds')
@Controller('wharf/builds')
@Scopes('game:edit:builds')
export class PushesController {
  constructor(
    private readonly pushes: PushesService,
    private readonly pushedFiles: PushedFilesService,
    private readonly events: BuildEventsService,
    private readonly idempotency: IdempotencyService,
  ) {}

  @Post()
  @ApiOperation({
    summary: 'Create a build',
    description: `${FOR_EDITORS} Then upload its patch and signature. A channel that doesn't exist is created.`,
  })
  @OncePerKey()
  @ApiOkResponse({ type: CreateBuildResponse })
  @Fails(404, 'invalid game')
  @Fails(429, 'too many unfinished builds', 'too many channels', 'rate limit exceeded')
  create(
    @Params() request: CreateBuildRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<CreateBuildResponse> {
    return this.pushes.create(request, credential, key);
  }

  @Get(':build_id')
  @ApiOperation({ summary: 'Get a pushed build', description: FOR_EDITORS })
  @ApiOkResponse({ type: OnePushedBuildResponse })
  @Fails(404, 'invalid build')
  async one(
    @Params() { build_id }: PushedBuildRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OnePushedBuildResponse> {
    return { build: pushedBuildResponse(await this.pushes.require(build_id, credential)) };
  }

  @Get(':build_id/files')
  @ApiOperation({ summary: 'List the files of a pushed build', description: FOR_EDITORS })
  @ApiOkResponse({ type: PushedFilesResponse })
  @Fails(404, 'invalid build')
  async files(
    @Params() { build_id }: PushedBuildRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<PushedFilesResponse> {
    return { files: await this.pushedFiles.list(build_id, credential) };
  }

  @Post(':build_id/files')
  @ApiOperation({
    summary: 'Create a file of a build',
    description: `${FOR_EDITORS} The file is then uploaded to \`upload_url\`: a POST, whose \`Location\` takes the parts.`,
  })
  @OncePerKey()
  @ApiOkResponse({ type: CreateBuildFileResponse })
  @Fails(404, 'invalid build')
  @Fails(409, 'the file is already complete', 'the build takes no more files')
  @Fails(429, 'too many unfinished uploads', 'rate limit exceeded')
  async createFile(
    @Params() request: CreateBuildFileRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<CreateBuildFileResponse> {
    return { file: await this.pushedFiles.create(request, credential, key) };
  }

  @Get(':build_id/files/:file_id/download')
  @ApiOperation({
    summary: 'Download a file of a pushed build',
    description: `${FOR_EDITORS} Redirects to a signed URL that expires.`,
  })
  @RedirectsToFile()
  @Fails(404, 'invalid build', 'invalid build file')
  async download(
    @Params() request: PushedFileRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<{ url: string }> {
    return { url: await this.pushedFiles.url(request, credential) };
  }

  @Post(':build_id/files/:file_id')
  @ApiOperation({
    summary: 'Finish a file of a build',
    description: `${FOR_EDITORS} When both files are complete, the build is processed.`,
  })
  @OncePerKey()
  @ApiOkResponse({ type: OnePushedFileResponse })
  @Fails(404, 'invalid build', 'invalid build file')
  async finishFile(
    @Params() request: FinishBuildFileRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<OnePushedFileResponse> {
    return { file: await this.pushedFiles.finish(request, credential, key) };
  }

  @Post(':build_id/failures')
  @ApiOperation({ summary: 'Report the failure of a build', description: `${FOR_EDITORS} The build fails.` })
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(404, 'invalid build')
  async fail(
    @Params() request: FailBuildRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    await this.pushes.fail(request, credential, key);
    return { success: true };
  }

  @Post(':build_id/publish')
  @ApiOperation({
    summary: 'Publish a hidden build',
    description: `${FOR_EDITORS} It becomes the head of its channel if it is the newest completed build.`,
  })
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(404, 'invalid build')
  @Fails(409, 'the build has failed')
  async publish(
    @Params() request: PushedBuildRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    await this.pushes.publish(request, credential, key);
    return { success: true };
  }

  @Get(':build_id/events')
  @ApiOperation({ summary: 'List the events of a build', description: FOR_EDITORS })
  @ApiOkResponse({ type: BuildEventsResponse })
  @Fails(404, 'invalid build')
  async listEvents(
    @Params() { build_id }: PushedBuildRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<BuildEventsResponse> {
    await this.pushes.require(build_id, credential);
    return { events: await this.events.list(build_id) };
  }

  @Post(':build_id/events')
  @ApiOperation({
    summary: 'Report an event of a build',
    description: `${FOR_EDITORS} At most 1,000 events and 1 MiB per build. Failed builds take no more once ten newer ones of the game have failed.`,
  })
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(404, 'invalid build')
  @Fails(429, 'too many events of the build', 'rate limit exceeded')
  async addEvent(
    @Params() request: CreateBuildEventRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    await this.pushes.require(request.build_id, credential);
    return this.idempotency.once(key, request, async (manager) => {
      await this.events.add(request.build_id, request, manager);
      return { success: true } as const;
    });
  }
}

@ApiTags('Builds')
@Controller('profile')
export class ProfileBuildsController {
  constructor(private readonly pushes: PushesService) {}

  @Get('builds')
  @ApiOperation({
    summary: 'List the builds of games that the user can edit',
    description: 'Newest first. Builds that are only started are listed if they are requested.',
  })
  @Scopes('game:edit:builds')
  @ApiOkResponse({ type: ProfileBuildsResponse })
  async list(
    @Params() request: ProfileBuildsRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<ProfileBuildsResponse> {
    const { page, per_page } = request;
    const builds = (await this.pushes.ofProfile(request, credential)).map(pushedBuildResponse);
    return { page, per_page, builds };
  }
}
