import { ApiProperty } from '@nestjs/swagger';
import { GameWithUserResponse } from '../../games/embedded-game.dto';
import { IntegerField, TimeField } from '../../platform/openapi/fields';
import { UploadResponse } from '../../uploads/upload.dto';

export class KeyOfPageObject {
  @IntegerField('ID of the key', 561)
  id: number;

  @IntegerField('ID of the game', 1)
  game_id: number;

  @TimeField('Time of creation')
  created_at: string;

  @ApiProperty({ example: false, description: 'Whether the key belongs to an account' })
  claimed: boolean;
}

export class KeyPageResponse {
  @ApiProperty({ description: 'The key, without its text' })
  download_key: KeyOfPageObject;

  @ApiProperty({ description: 'The game of the key, even if it is no longer public' })
  game: GameWithUserResponse;

  @ApiProperty({ type: [UploadResponse], description: "The game's files, by position, then by ID" })
  uploads: UploadResponse[];
}
