import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IntegerField, TimeField } from '../../platform/openapi/fields';
import type { StoreLinks } from '../../platform/config/store-links';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { GameRequest, GameWithUserResponse, gameWithUserResponse } from '../../games/embedded-game.dto';
import { Flag } from '../../platform/input/parameters';
import { PageResponse, Page, PerPage } from '../../platform/input/paging';
import type { OwnedKeyRow } from './owned-key.row';

export class OwnedKeysRequest {
  @Page()
  page: number = 1;

  @PerPage('Number of keys per page', 50)
  per_page: number = 50;
}

export class OwnedKeyObject {
  @IntegerField('ID of the key', 1)
  id: number;

  @IntegerField('ID of the game', 1)
  game_id: number;

  @IntegerField('ID of the purchase; null for a key without a purchase', 1, { nullable: true })
  purchase_id: number | null;

  @TimeField('Time of creation', '2017-06-24T13:23:51Z')
  created_at: string;

  @TimeField('Time of the last change; the same as `created_at` if there was none', '2017-06-24T13:23:51Z')
  updated_at: string;

  @ApiProperty({ type: 'integer', description: 'Number of downloads with the key', example: 2 })
  downloads: number;

  @ApiProperty({ description: 'The game, even if it is no longer public' })
  game: GameWithUserResponse;
}

export class OwnedKeysResponse extends PageResponse {
  @ApiProperty({ type: [OwnedKeyObject], description: 'Newest first' })
  owned_keys: OwnedKeyObject[];
}

export class OwnershipRequest extends GameRequest {
  @Flag('Whether the response includes a signed proof', { default: false })
  proof: boolean = false;
}

export class OwnershipResponse {
  @ApiProperty({
    example: true,
    description: 'Whether the user has a key or a completed purchase of the game, or can edit it',
  })
  owns: boolean;

  @ApiPropertyOptional({
    description:
      'JWT of the type `ownership+jwt` that states the ownership; absent unless it was requested and `owns` is true',
  })
  proof?: string;
}

export const ownedKeyResponse = (row: OwnedKeyRow, links: StoreLinks): OwnedKeyObject => ({
  id: row.key_id,
  game_id: row.id,
  purchase_id: row.purchase_id,
  created_at: modernTimestamp(row.key_created_at),
  updated_at: modernTimestamp(row.key_updated_at ?? row.key_created_at),
  downloads: row.downloads,
  game: gameWithUserResponse(row, links),
});
