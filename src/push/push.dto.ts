import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { modernTimestamp } from '../platform/formats/timestamps';
import { Page, PageResponse, PerPage } from '../platform/input/paging';
import { Id, Mark, MaxCharacters, NonEmptyText, OneOf, Pattern, Text } from '../platform/input/parameters';
import { EnumField, IntegerField, NullableText, TimeField } from '../platform/openapi/fields';
import { BuildResponse, buildResponse } from '../uploads/build.dto';
import type { BuildRow } from '../uploads/upload.row';
import { BUILD_FILE_STATES, PUSHED_FILE_TYPES } from '../wharf/build-file.entity';

const MAX_JSON_CHARACTERS = 100_000;
const MAX_MESSAGE_CHARACTERS = 10_000;

const optional = { required: false };

const ShortText = (description: string) => applyDecorators(Text(description, optional), MaxCharacters(200));
const Json = (description: string) =>
  applyDecorators(Text(description, optional), MaxCharacters(MAX_JSON_CHARACTERS));

export class CreateBuildRequest {
  @NonEmptyText('The game as owner/slug, or its ID', { example: 'ash-beetle/brave-arcade' })
  @Pattern(/^([^/]+\/[^/]+|[1-9]\d{0,15})$/, '$property must be of the form user/game, or the ID of a game')
  target: string;

  @NonEmptyText('Name of the channel, which is created if it is new', { example: 'windows' })
  @Pattern(/^[a-z0-9._-]{1,200}$/, '$property must have 1 to 200 of the characters a-z 0-9 . _ -')
  channel: string;

  @ShortText("The developer's own name of the version")
  user_version?: string;

  @Mark('The build becomes the head of its channel only when it is published', optional)
  hidden?: boolean;

  @ShortText('The program that pushes the build')
  source?: string;

  @Json('JSON that is stored with the build')
  metadata?: string;

  @Json('JSON that is stored with the build: how its programs are started')
  launch_analysis?: string;
}

export class PushedBuildRequest {
  @Id('ID of the build')
  build_id: number;
}

export class CreateBuildFileRequest extends PushedBuildRequest {
  @NonEmptyText('Type of the file')
  @OneOf(PUSHED_FILE_TYPES)
  type: (typeof PUSHED_FILE_TYPES)[number];

  @Text('Subtype of the file', { default: 'default' })
  @OneOf(['default'])
  sub_type = 'default' as const;

  @Text('How the file is uploaded', { default: 'deferred_resumable' })
  @OneOf(['deferred_resumable'])
  upload_type = 'deferred_resumable' as const;
}

export class PushedFileRequest extends PushedBuildRequest {
  @Id('ID of the file')
  file_id: number;
}

export class FinishBuildFileRequest extends PushedFileRequest {
  @Id('Size of the file in bytes')
  size: number;
}

export class FailBuildRequest extends PushedBuildRequest {
  @NonEmptyText('Why the build failed')
  @MaxCharacters(MAX_MESSAGE_CHARACTERS)
  message: string;

  @Mark('The upload tool will not try again', optional)
  fatal?: boolean;
}

export class CreateBuildEventRequest extends PushedBuildRequest {
  @NonEmptyText('Type of the event', { example: 'log' })
  @MaxCharacters(100)
  type: string;

  @Text('Text of the event')
  @MaxCharacters(MAX_MESSAGE_CHARACTERS)
  message: string;

  @Json('JSON with details')
  data?: string;
}

export const LISTED_STATES = ['started', 'processing', 'completed', 'failed', 'live'] as const;

export class ProfileBuildsRequest {
  @Page()
  page: number = 1;

  @PerPage('Maximum number of builds per page', 50)
  per_page: number = 50;

  @Text('Only builds in this state. `live`: completed and not hidden', optional)
  @OneOf(LISTED_STATES)
  state?: (typeof LISTED_STATES)[number];

  @Text('IDs of builds to list although they are only started, separated by commas; at most 100', {
    required: false,
    example: '12,15',
  })
  @Pattern(/^\[?\d{1,15}(, ?\d{1,15}){0,99}\]?$/, '$property must be at most 100 IDs, separated by commas')
  started_build_ids?: string;
}

export class ParentBuildResponse {
  @IntegerField('ID of the build', 9)
  id: number;
}

export class CreatedBuildResponse {
  @IntegerField('ID of the build', 10)
  id: number;

  @IntegerField('ID of the upload that players see for the channel', 5)
  upload_id: number;

  @ApiProperty({
    type: ParentBuildResponse,
    required: false,
    description: 'The build with which the files are compared; absent if there is none',
  })
  parent_build?: ParentBuildResponse;
}

export class CreateBuildResponse {
  @ApiProperty({ description: 'The new build' })
  build: CreatedBuildResponse;
}

export class PushedBuildResponse extends BuildResponse {
  @ApiProperty({ description: 'Completed, but not the head of the channel until it is published' })
  hidden: boolean;

  @NullableText('Why the build failed; null if it did not', null)
  error: string | null;
}

export class OnePushedBuildResponse {
  @ApiProperty({ description: 'The build' })
  build: PushedBuildResponse;
}

export class ProfileBuildsResponse extends PageResponse {
  @ApiProperty({ type: [PushedBuildResponse], description: 'Newest first' })
  builds: PushedBuildResponse[];
}

export class PushedFileResponse {
  @IntegerField('ID of the file', 11)
  id: number;

  @IntegerField('Size in bytes, as far as it is uploaded', 48211093)
  size: number;

  @EnumField(['archive', ...PUSHED_FILE_TYPES], 'Type of the file', 'signature')
  type: 'archive' | (typeof PUSHED_FILE_TYPES)[number];

  @EnumField(['default'], 'Subtype of the file')
  sub_type: 'default';

  @EnumField(BUILD_FILE_STATES, 'State of the file', 'uploaded')
  state: (typeof BUILD_FILE_STATES)[number];

  @TimeField('Time of creation')
  created_at: string;

  @TimeField('Time of the last change')
  updated_at: string;
}

export class PushedFilesResponse {
  @ApiProperty({ type: [PushedFileResponse], description: 'Files of the build, by ID' })
  files: PushedFileResponse[];
}

export class OnePushedFileResponse {
  @ApiProperty({ description: 'The file' })
  file: PushedFileResponse;
}

export class FileToUploadResponse {
  @IntegerField('ID of the file', 11)
  id: number;

  @ApiProperty({
    format: 'uri',
    description: 'Where to start the upload, within 24 hours, without a credential',
  })
  upload_url: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Headers to send with it',
  })
  upload_headers: Record<string, string>;
}

export class CreateBuildFileResponse {
  @ApiProperty({ description: 'The new file' })
  file: FileToUploadResponse;
}

export class BuildEventResponse {
  @IntegerField('ID of the event', 1)
  id: number;

  @ApiProperty({ example: 'log', description: 'Type of the event' })
  type: string;

  @ApiProperty({ example: 'Processing starts.', description: 'Text of the event' })
  message: string;

  @NullableText('JSON with details; null if there are none', null)
  data: string | null;

  @TimeField('Time of the event')
  created_at: string;
}

export class BuildEventsResponse {
  @ApiProperty({ type: [BuildEventResponse], description: 'Events of the build, oldest first' })
  events: BuildEventResponse[];
}

export interface PushedBuildRow extends BuildRow {
  hidden: boolean;
  error: string | null;
}

// Object.assign, because adding properties after a spread is much slower.
export const pushedBuildResponse = (row: PushedBuildRow): PushedBuildResponse =>
  Object.assign(buildResponse(row), { hidden: row.hidden, error: row.error });

export const pushedFileResponse = (row: PushedFileResponse): PushedFileResponse => ({
  id: row.id,
  size: row.size,
  type: row.type,
  sub_type: 'default',
  state: row.state,
  created_at: modernTimestamp(row.created_at),
  updated_at: modernTimestamp(row.updated_at),
});
