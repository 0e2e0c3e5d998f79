import { ApiProperty } from '@nestjs/swagger';
import { IntegerField, NullableText, TimeField } from '../platform/openapi/fields';
import type { StoreLinks } from '../platform/config/store-links';
import { EmbeddedGameResponse, embeddedGameResponse } from '../games/embedded-game.dto';
import { PageResponse, Page, PerPage } from '../platform/input/paging';
import { IdList, Id } from '../platform/input/parameters';
import type { Packed } from '../platform/database/packed-row';
import { modernTimestamp } from '../platform/formats/timestamps';
import { COLLECTION_GAME_ROW } from './collection-game.row';
import { SuccessResponse } from '../platform/output/success-response';
import { CollectionRequest, Html } from './collection.dto';

export class CollectionGamesRequest extends CollectionRequest {
  @Page()
  page: number = 1;

  @PerPage('Number of entries per page', 100)
  per_page: number = 100;
}

export class RemoveGameRequest extends CollectionRequest {
  @Id('ID of the game')
  game_id: number;
}

export class AddGameRequest extends RemoveGameRequest {
  @Html('Note about the game, as HTML', { required: false })
  blurb?: string | null;
}

export class UpdateCollectionGameRequest extends RemoveGameRequest {
  @Html('Note about the game, as HTML; an empty value clears it', { required: false })
  blurb?: string | null;
}

export class OrderRequest extends CollectionRequest {
  @IdList('IDs of the games that come first, in this order; the other games follow in their previous order', {
    example: [3, 1, 2],
  })
  game_ids: number[];

  @IdList('IDs of games to remove first', { example: [4], required: false })
  remove_game_ids: number[] = [];
}

export class CollectionGameResponse {
  @IntegerField('ID of the collection')
  collection_id: number;

  @IntegerField('ID of the game')
  game_id: number;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    description: 'Position in the collection, from 1; counts entries that the user cannot see',
  })
  position: number;

  @NullableText('Note about the game, as sanitized HTML; null if there is none')
  blurb: string | null;

  @IntegerField('ID of the user who added the game')
  user_id: number;

  @TimeField('Time when the game was added')
  created_at: string;

  @ApiProperty({ description: 'The game' })
  game: EmbeddedGameResponse;
}

export class OneCollectionGameResponse {
  @ApiProperty({ description: 'The entry' })
  collection_game: CollectionGameResponse;
}

export class CollectionGamesResponse extends PageResponse {
  @ApiProperty({ type: [CollectionGameResponse], description: 'Entries in display order' })
  collection_games: CollectionGameResponse[];
}

export class RemovedResponse extends SuccessResponse {
  @ApiProperty({ description: 'Whether the game was in the collection' })
  removed: boolean;
}

export function collectionGameResponse(
  collection_id: number,
  selected: Packed,
  links: StoreLinks,
): CollectionGameResponse {
  const row = COLLECTION_GAME_ROW.read(selected);
  return {
    collection_id,
    game_id: row.id,
    position: row.position,
    blurb: row.blurb,
    user_id: row.user_id,
    created_at: modernTimestamp(row.added_at),
    game: embeddedGameResponse(row, links),
  };
}
