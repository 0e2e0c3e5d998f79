import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../platform/config/store-links';
import { modernTimestamp } from '../platform/formats/timestamps';
import { EnumField, IntegerField, NullableText, TimeField } from '../platform/openapi/fields';
import { gameUserResponse, GameUserResponse, type GameUserRow } from '../games/embedded-game.dto';
import { BUILD_STATES } from '../wharf/build.entity';
import { PUSHED_FILE_TYPES } from '../wharf/build-file.entity';
import type { BuildRow, FilesRow } from './upload.row';

const BUILD_FILE_TYPES = ['archive', ...PUSHED_FILE_TYPES] as const;

export class BuildFileResponse {
  @IntegerField('ID of the file', 10)
  id: number;

  @IntegerField('Size in bytes', 48211093)
  size: number;

  @EnumField(BUILD_FILE_TYPES, 'Type of the file', 'archive')
  type: (typeof BUILD_FILE_TYPES)[number];

  @EnumField(['default'], 'Subtype of the file')
  sub_type: 'default';

  @EnumField(['uploaded'], 'State of the file')
  state: 'uploaded';
}

export class BuildResponse {
  @IntegerField('ID of the build', 10)
  id: number;

  @IntegerField('ID of the upload that players see for the channel; null if there is none', 5, {
    nullable: true,
  })
  upload_id: number | null;

  @IntegerField('ID of the game', 1)
  game_id: number;

  @IntegerField('ID of the previous build in the channel; -1 for the first one', -1)
  parent_build_id: number;

  @IntegerField('Number of the build in its channel, from 1', 1)
  version: number;

  @NullableText("The developer's own name of the version; null if the build has none", '1.2.0')
  user_version: string | null;

  @EnumField(BUILD_STATES, 'Players see completed builds only', 'completed')
  state: (typeof BUILD_STATES)[number];

  @TimeField('Time of creation')
  created_at: string;

  @TimeField('Time of the last change')
  updated_at: string;
}

export class BuildWithFilesResponse extends BuildResponse {
  @ApiProperty({ type: [BuildFileResponse], description: 'Files of the build; empty if it has none' })
  files: BuildFileResponse[];
}

export class BuildWithOwnerResponse extends BuildWithFilesResponse {
  @ApiProperty({ description: 'Owner of the game' })
  user: GameUserResponse;
}

export class BuildsResponse {
  @ApiProperty({ type: [BuildResponse], description: 'Newest first, at most 200' })
  builds: BuildResponse[];
}

export class OneBuildResponse {
  @ApiProperty({ description: 'The build' })
  build: BuildWithOwnerResponse;
}

export class UpgradePath {
  @ApiProperty({
    type: [BuildWithFilesResponse],
    description:
      'Builds from the current one (included) to the target. Each build after the first has a patch',
  })
  builds: BuildWithFilesResponse[];
}

export class UpgradePathResponse {
  @ApiProperty({ description: 'The builds whose patches update a game' })
  upgrade_path: UpgradePath;
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

export const buildWithFiles = (row: BuildRow & FilesRow): BuildWithFilesResponse => ({
  ...buildResponse(row),
  files: buildFiles(row),
});

export const buildWithOwner = (
  row: BuildRow & FilesRow & GameUserRow,
  links: StoreLinks,
): BuildWithOwnerResponse => ({ ...buildWithFiles(row), user: gameUserResponse(row, links) });

/** The archive has the ID of the build. */
function buildFiles(row: BuildRow & FilesRow): BuildFileResponse[] {
  const file = (type: BuildFileResponse['type'], id: number | null, size: number | null) =>
    id === null || size === null
      ? []
      : [{ id, size, type, sub_type: 'default' as const, state: 'uploaded' as const }];
  return [
    ...file('archive', row.id, row.size),
    ...file('patch', row.patch_id, row.patch_size),
    ...file('signature', row.signature_id, row.signature_size),
  ];
}
