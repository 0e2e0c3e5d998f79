import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { modernTimestamp } from '../platform/formats/timestamps';
import {
  EnumField,
  EnumList,
  IntegerField,
  NullableObject,
  NullableText,
  TimeField,
} from '../platform/openapi/fields';
import { BuildResponse, buildResponse } from './build.dto';
import { UPLOAD_TRAITS, UPLOAD_TYPES } from './upload.entity';
import type { BuildRow, UploadRow } from './upload.row';

export class UploadResponse {
  @IntegerField('ID of the upload', 5)
  id: number;

  @IntegerField('ID of the game', 1)
  game_id: number;

  @IntegerField("Position in the game's list of uploads", 0)
  position: number;

  @EnumField(UPLOAD_TYPES, 'Type of the content', 'default')
  type: (typeof UPLOAD_TYPES)[number];

  @ApiProperty({ example: 'brave-arcade-windows.zip', description: 'Name under which to save the file' })
  filename: string;

  @NullableText('Name to show in place of the file name; null if it has none', null)
  display_name: string | null;

  @EnumField(
    ['hosted', 'build', 'external'],
    'A single file, the newest build of a channel, or a link to another site',
    'build',
  )
  storage: 'hosted' | 'build' | 'external';

  @IntegerField(
    'Size in bytes; absent for external uploads, null for a channel without a build to download',
    48211093,
    { nullable: true, required: false },
  )
  size?: number | null;

  @NullableText(
    'MD5 of the file in hexadecimal digits; absent for external uploads, null if unknown',
    '0cc175b9c0f1b6a831c399e269772661',
    { required: false },
  )
  md5_hash?: string | null;

  @IntegerField('ID of the newest build; only for `build`', 10, { nullable: true, required: false })
  build_id?: number | null;

  @ApiPropertyOptional({ example: 'windows', description: 'Name of the channel; only for `build`' })
  channel_name?: string;

  @ApiPropertyOptional({ example: 'example.com', description: 'Host of the link; only for `external`' })
  host?: string;

  @EnumList(UPLOAD_TRAITS, 'Platforms (`p_...`), and `demo` for a file that everyone may download', [
    'p_windows',
  ])
  traits: (typeof UPLOAD_TRAITS)[number][];

  @NullableObject(BuildResponse, 'The newest build; only for `build`', { required: false })
  build?: BuildResponse | null;

  @TimeField('Time of creation')
  created_at: string;

  @TimeField('Time of the last change')
  updated_at: string;
}

export class UploadsResponse {
  @ApiProperty({ type: [UploadResponse], description: 'Uploads by position, then by ID' })
  uploads: UploadResponse[];
}

export class OneUploadResponse {
  @ApiProperty({ description: 'The upload' })
  upload: UploadResponse;
}

/** The fields that depend on the location of the file. */
export function uploadSource<Build>(row: UploadRow, build: (row: BuildRow) => Build) {
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
  ...uploadSource(row, buildResponse),
});
