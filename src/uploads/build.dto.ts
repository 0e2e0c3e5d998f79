import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../platform/config/store-links';
import { modernTimestamp } from '../platform/formats/timestamps';
import { EnumField, IntegerField, NullableText, TimeField } from '../platform/openapi/fields';
import { gameUserResponse, GameUserResponse, type GameUserRow } from '../games/embedded-game.dto';
import { BUILD_STATES } from '../wharf/build.entity';
import type { BuildRow } from './upload.row';

export class BuildFileResponse {
  @IntegerField('ID of the file', 10)
  id: number;

  @IntegerField('Size in bytes', 48211093)
  size: number;

  @EnumField(['archive'], 'Type of the file')
  type: 'archive';

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
  @ApiProperty({ description: 'Owner of the game' })
  user: GameUserResponse;

  @ApiProperty({ type: [BuildFileResponse], description: 'Files of the build; empty if it has none' })
  files: BuildFileResponse[];
}

export class BuildsResponse {
  @ApiProperty({ type: [BuildResponse], description: 'Newest first, at most 200' })
  builds: BuildResponse[];
}

export class OneBuildResponse {
  @ApiProperty({ description: 'The build' })
  build: BuildWithFilesResponse;
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
  user: gameUserResponse(row, links),
  files:
    row.size === null
      ? []
      : [{ id: row.id, size: row.size, type: 'archive', sub_type: 'default', state: 'uploaded' }],
});
