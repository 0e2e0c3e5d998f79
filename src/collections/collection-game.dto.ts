import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../config/store-links';
import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES } from '../games/game.entity';
import { Between, IdListParameter, IntegerParameter, parameter } from '../http/parameters';
import { readCount } from '../http/readers';
import { modernTimestamp } from '../http/timestamps';
import { CollectionRequest, HtmlParameter, SuccessAnswer } from './collection.dto';

const CountParameter = parameter(readCount, { type: 'integer', format: 'int64' });

export class CollectionGamesRequest extends CollectionRequest {
  @Between(1)
  @CountParameter('Which page, from 1', { default: 1 })
  page: number = 1;

  @Between(1, 500)
  @CountParameter('Entries on a page', { default: 100 })
  per_page: number = 100;
}

export class AddGameRequest extends CollectionRequest {
  @IntegerParameter('The game', { required: true })
  game_id: number;

  @HtmlParameter('HTML; a note on the game')
  blurb?: string | null;
}

export class RemoveGameRequest extends CollectionRequest {
  @IntegerParameter('The game', { required: true })
  game_id: number;
}

export class UpdateCollectionGameRequest extends CollectionRequest {
  @IntegerParameter('The game', { in: 'path' })
  game_id: number;

  @HtmlParameter('HTML; empty clears it')
  blurb?: string | null;
}

export class OrderRequest extends CollectionRequest {
  @IdListParameter('The games that come first, in this order; the others follow as they stand', {
    required: true,
    example: [3, 1, 2],
  })
  game_ids: number[];

  @IdListParameter('Games to remove before that', { example: [4] })
  remove_game_ids: number[] = [];
}

export class EmbeddedGameAnswer {
  @ApiProperty({ type: 'integer', format: 'int64', example: 42 })
  id: number;

  @ApiProperty({ example: 'Paper Boats' })
  title: string;

  @ApiProperty({ type: String, nullable: true })
  short_text: string | null;

  @ApiProperty({ format: 'uri', example: 'https://leaf.gamewharf.example/paper-boats' })
  url: string;

  @ApiProperty({ type: String, format: 'uri', nullable: true })
  cover_url: string | null;

  @ApiProperty({ enum: GAME_TYPES })
  type: (typeof GAME_TYPES)[number];

  @ApiProperty({ enum: GAME_CLASSIFICATIONS })
  classification: (typeof GAME_CLASSIFICATIONS)[number];

  @ApiProperty({ enum: GAME_TRAITS, isArray: true })
  traits: (typeof GAME_TRAITS)[number][];

  @ApiProperty({ type: 'integer', format: 'int64', description: 'In minor units of the currency' })
  min_price: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  published_at: string | null;

  @ApiProperty({ format: 'date-time' })
  created_at: string;
}

export class CollectionGameAnswer {
  @ApiProperty({ type: 'integer', format: 'int64' })
  collection_id: number;

  @ApiProperty({ type: 'integer', format: 'int64' })
  game_id: number;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    description: 'The rank in the whole collection, entries that the caller may not see included',
  })
  position: number;

  @ApiProperty({ type: String, nullable: true, description: 'Sanitised HTML' })
  blurb: string | null;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'Who added the game' })
  user_id: number;

  @ApiProperty({ format: 'date-time' })
  created_at: string;

  @ApiProperty()
  game: EmbeddedGameAnswer;
}

export class OneCollectionGameAnswer {
  @ApiProperty()
  collection_game: CollectionGameAnswer;
}

export class CollectionGamesAnswer {
  @ApiProperty({ type: 'integer' })
  page: number;

  @ApiProperty({ type: 'integer' })
  per_page: number;

  @ApiProperty({ type: [CollectionGameAnswer], description: 'In display order' })
  collection_games: CollectionGameAnswer[];
}

export class RemovedAnswer extends SuccessAnswer {
  @ApiProperty({ description: 'Whether the game was in the collection' })
  removed: boolean;
}

/** An entry with its game, as the statements select it. */
export interface CollectionGameRow {
  game_id: number;
  position: number;
  blurb: string | null;
  user_id: number;
  created_at: string;
  game_title: string;
  game_short_text: string | null;
  game_slug: string;
  game_username: string;
  game_cover_url: string | null;
  game_type: (typeof GAME_TYPES)[number];
  game_classification: (typeof GAME_CLASSIFICATIONS)[number];
  game_traits: (typeof GAME_TRAITS)[number][];
  game_min_price: number;
  game_published_at: string | null;
  game_created_at: string;
}

export const collectionGameAnswer = (
  collection_id: number,
  row: CollectionGameRow,
  links: StoreLinks,
): CollectionGameAnswer => ({
  collection_id,
  game_id: row.game_id,
  position: row.position,
  blurb: row.blurb,
  user_id: row.user_id,
  created_at: modernTimestamp(row.created_at),
  game: {
    id: row.game_id,
    title: row.game_title,
    short_text: row.game_short_text,
    url: links.game(row.game_username, row.game_slug),
    cover_url: row.game_cover_url,
    type: row.game_type,
    classification: row.game_classification,
    traits: row.game_traits,
    min_price: row.game_min_price,
    published_at: row.game_published_at && modernTimestamp(row.game_published_at),
    created_at: modernTimestamp(row.game_created_at),
  },
});
