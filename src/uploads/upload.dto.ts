import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { StoreLinks } from '../platform/config/store-links';
import { modernTimestamp } from '../platform/formats/timestamps';
import { ExactlyOneOf, Id, NonEmptyText, Pattern, Text } from '../platform/http/parameters';
import { gameUserAnswer, GameUserResponse, type GameUserRow } from '../games/embedded-game.dto';
import { BUILD_STATES } from '../wharf/build.entity';
import { UPLOAD_TRAITS, UPLOAD_TYPES } from './upload.entity';
import type { BuildRow, ChannelRow, UploadRow } from './upload.row';

class DownloadKeyChoice {
  @Id('ID of a download key of the game that belongs to the user, as in the list of owned keys', {
    required: false,
  })
  download_key_id?: number;
}

export class UploadsRequest extends DownloadKeyChoice {
  @Id('ID of the game')
  game_id: number;
}

export class UploadRequest extends DownloadKeyChoice {
  @Id('ID of the upload')
  upload_id: number;
}

export class BuildRequest extends DownloadKeyChoice {
  @Id('ID of the build')
  build_id: number;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const SESSION = 'The download session. All requests of one session count as one download';
const NOT_A_UUID = '$property must be a UUID';

export class DownloadUploadRequest extends UploadRequest {
  @Text(SESSION, { example: '8b1f3c3e-5a3f-4c0e-9b0c-8f4f8f3e6a51', required: false })
  @Pattern(UUID, NOT_A_UUID)
  uuid?: string;
}

export class DownloadBuildRequest extends BuildRequest {
  @NonEmptyText('Type of the file', { example: 'archive' })
  file_type: string;

  @NonEmptyText('Subtype of the file', { example: 'default' })
  sub_type: string;

  @Text(SESSION, { example: '8b1f3c3e-5a3f-4c0e-9b0c-8f4f8f3e6a51', required: false })
  @Pattern(UUID, NOT_A_UUID)
  uuid?: string;
}

@ExactlyOneOf('target', 'game_id')
export class ChannelsRequest {
  @Text('The game as owner/slug, or its ID', { example: 'ash-beetle/brave-arcade', required: false })
  @Pattern(/^([^/]+\/[^/]+|[1-9]\d{0,15})$/, '$property must be of the form user/game, or the ID of a game')
  target?: string;

  @Id('ID of the game', { required: false })
  game_id?: number;
}

export class ChannelRequest extends ChannelsRequest {
  @NonEmptyText('Name of the channel', { example: 'windows' })
  channel_name: string;
}

export class BuildFileResponse {
  @ApiProperty({ type: 'integer', format: 'int64', example: 10, description: 'ID of the file' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64', example: 48211093, description: 'Size in bytes' })
  size: number;

  @ApiProperty({ enum: ['archive'], description: 'Type of the file' })
  type: 'archive';

  @ApiProperty({ enum: ['default'], description: 'Subtype of the file' })
  sub_type: 'default';

  @ApiProperty({ enum: ['uploaded'], description: 'State of the file' })
  state: 'uploaded';
}

export class BuildResponse {
  @ApiProperty({ type: 'integer', format: 'int64', example: 10, description: 'ID of the build' })
  id: number;

  @ApiProperty({
    type: 'integer',
    format: 'int64',
    nullable: true,
    example: 5,
    description: 'ID of the upload that shows the channel; null if no upload does',
  })
  upload_id: number | null;

  @ApiProperty({ type: 'integer', format: 'int64', example: 1, description: 'ID of the game' })
  game_id: number;

  @ApiProperty({
    type: 'integer',
    format: 'int64',
    example: -1,
    description: 'ID of the build before it in the channel; -1 for the first one',
  })
  parent_build_id: number;

  @ApiProperty({ type: 'integer', example: 1, description: 'Number of the build in its channel, from 1' })
  version: number;

  @ApiProperty({
    type: String,
    nullable: true,
    example: '1.2.0',
    description: "The developer's own name of the version; null if the build has none",
  })
  user_version: string | null;

  @ApiProperty({ enum: BUILD_STATES, example: 'completed', description: 'Players see completed builds only' })
  state: (typeof BUILD_STATES)[number];

  @ApiProperty({ format: 'date-time', example: '2026-01-02T03:04:05Z', description: 'Time of creation' })
  created_at: string;

  @ApiProperty({
    format: 'date-time',
    example: '2026-01-02T03:04:05Z',
    description: 'Time of the last change',
  })
  updated_at: string;
}

export class BuildWithFilesResponse extends BuildResponse {
  @ApiProperty({ description: 'Owner of the game' })
  user: GameUserResponse;

  @ApiProperty({ type: [BuildFileResponse], description: 'Files of the build; empty if it has none' })
  files: BuildFileResponse[];
}

export class UploadResponse {
  @ApiProperty({ type: 'integer', format: 'int64', example: 5, description: 'ID of the upload' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64', example: 1, description: 'ID of the game' })
  game_id: number;

  @ApiProperty({ type: 'integer', format: 'int64', example: 0, description: 'Place in the list of the game' })
  position: number;

  @ApiProperty({ enum: UPLOAD_TYPES, example: 'default', description: 'What the file contains' })
  type: (typeof UPLOAD_TYPES)[number];

  @ApiProperty({ example: 'brave-arcade-windows.zip', description: 'Name under which to save the file' })
  filename: string;

  @ApiProperty({
    type: String,
    nullable: true,
    example: null,
    description: 'Name to show in place of the file name; null if it has none',
  })
  display_name: string | null;

  @ApiProperty({
    enum: ['hosted', 'build', 'external'],
    example: 'build',
    description: 'A single file, the newest build of a channel, or a link to another site',
  })
  storage: 'hosted' | 'build' | 'external';

  @ApiPropertyOptional({
    type: 'integer',
    format: 'int64',
    nullable: true,
    example: 48211093,
    description: 'Size in bytes; absent for external uploads, null for a channel without a build to download',
  })
  size?: number | null;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    example: '0cc175b9c0f1b6a831c399e269772661',
    description: 'MD5 of the file in hexadecimal digits; absent for external uploads, null if unknown',
  })
  md5_hash?: string | null;

  @ApiPropertyOptional({
    type: 'integer',
    format: 'int64',
    nullable: true,
    example: 10,
    description: 'ID of the newest build; only for `build`',
  })
  build_id?: number | null;

  @ApiPropertyOptional({ example: 'windows', description: 'Name of the channel; only for `build`' })
  channel_name?: string;

  @ApiPropertyOptional({ example: 'example.com', description: 'Host of the link; only for `external`' })
  host?: string;

  @ApiProperty({
    enum: UPLOAD_TRAITS,
    isArray: true,
    example: ['p_windows'],
    description: 'Platforms (`p_...`), and `demo` for a file that everyone may download',
  })
  traits: (typeof UPLOAD_TRAITS)[number][];

  @ApiPropertyOptional({
    type: BuildResponse,
    nullable: true,
    description: 'The newest build; only for `build`',
  })
  build?: BuildResponse | null;

  @ApiProperty({ format: 'date-time', example: '2026-01-02T03:04:05Z', description: 'Time of creation' })
  created_at: string;

  @ApiProperty({
    format: 'date-time',
    example: '2026-01-02T03:04:05Z',
    description: 'Time of the last change',
  })
  updated_at: string;
}

export class UploadsResponse {
  @ApiProperty({ type: [UploadResponse], description: 'By position, then by ID' })
  uploads: UploadResponse[];
}

export class OneUploadResponse {
  @ApiProperty({ description: 'The upload' })
  upload: UploadResponse;
}

export class BuildsResponse {
  @ApiProperty({ type: [BuildResponse], description: 'Newest first, at most 200' })
  builds: BuildResponse[];
}

export class OneBuildResponse {
  @ApiProperty({ description: 'The build' })
  build: BuildWithFilesResponse;
}

export class DownloadSessionResponse {
  @ApiProperty({
    format: 'uuid',
    example: '8b1f3c3e-5a3f-4c0e-9b0c-8f4f8f3e6a51',
    description: 'Send it as `uuid` with each request of the download',
  })
  uuid: string;
}

export class ChannelResponse {
  @ApiProperty({ example: 'windows', description: 'Name of the channel' })
  name: string;

  @ApiProperty({ example: 'windows', description: 'Platforms, separated by commas' })
  tags: string;

  @ApiProperty({
    type: UploadResponse,
    nullable: true,
    description: 'The upload that shows the channel; null if none does',
  })
  upload: UploadResponse | null;

  @ApiProperty({
    type: BuildResponse,
    nullable: true,
    description: 'Newest completed build; null if there is none',
  })
  head: BuildResponse | null;

  @ApiProperty({
    type: BuildResponse,
    nullable: true,
    description: 'Newer build that is not completed; null if there is none',
  })
  pending: BuildResponse | null;
}

export class ChannelsResponse {
  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/ChannelResponse' },
    description: 'Channels by name',
  })
  channels: Record<string, ChannelResponse>;
}

export class OneChannelResponse {
  @ApiProperty({ description: 'The channel' })
  channel: ChannelResponse;
}

export class WharfStatusResponse {
  @ApiProperty({ example: true, description: 'Always true' })
  success: true;
}

export const buildResponse = (row: BuildRow): BuildResponse => ({
  id: row.id,
  upload_id: row.upload_id,
  game_id: row.game_id,
  parent_build_id: row.parent_build_id,
  version: row.version,
  user_version: row.user_version,
  state: row.state,
  created_at: modernTimestamp(row.created_at),
  updated_at: modernTimestamp(row.updated_at),
});

export const buildWithFiles = (
  row: BuildRow & GameUserRow & { size: number | null },
  links: StoreLinks,
): BuildWithFilesResponse => ({
  ...buildResponse(row),
  user: gameUserAnswer(row, links),
  files:
    row.size === null
      ? []
      : [{ id: row.id, size: row.size, type: 'archive', sub_type: 'default', state: 'uploaded' }],
});

/** The fields that depend on where the file is. */
export function sourceOf<Build>(row: UploadRow, build: (row: BuildRow) => Build) {
  if (row.external_url !== null)
    return { storage: 'external', host: new URL(row.external_url).host } as const;
  const { size, md5_hash } = row;
  if (row.channel_name === null) return { storage: 'hosted', size, md5_hash } as const;
  return {
    storage: 'build',
    size,
    md5_hash,
    build_id: row.build?.id ?? null,
    channel_name: row.channel_name,
    build: row.build && build(row.build),
  } as const;
}

export const uploadResponse = (row: UploadRow): UploadResponse => ({
  id: row.id,
  game_id: row.game_id,
  position: row.position,
  type: row.type,
  traits: row.traits,
  filename: row.filename,
  display_name: row.display_name,
  created_at: modernTimestamp(row.created_at),
  updated_at: modernTimestamp(row.updated_at),
  ...sourceOf(row, buildResponse),
});

export const channelResponse = ({ name, upload, head, pending }: ChannelRow): ChannelResponse => ({
  name,
  tags: (upload?.traits ?? [])
    .filter((trait) => trait.startsWith('p_'))
    .map((trait) => trait.slice(2))
    .join(','),
  upload: upload && uploadResponse(upload),
  head: head && buildResponse(head),
  pending: pending && buildResponse(pending),
});
