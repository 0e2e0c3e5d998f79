import { ApiProperty } from '@nestjs/swagger';
import { Max, Min } from 'class-validator';
import type { StoreLinks } from '../config/store-links';
import { listOf, words, wordsOf } from '../database/words';
import { EmbeddedGameAnswer } from '../games/embedded-game.dto';
import type { GAME_TRAITS } from '../games/game.entity';
import { IdListParameter, IntegerParameter } from '../http/parameters';
import { modernTimestamp } from '../formats/timestamps';
import { CollectionRequest, HtmlParameter, SuccessAnswer } from './collection.dto';

const MAX_PAGE = 1_000_000;

export class CollectionGamesRequest extends CollectionRequest {
  @IntegerParameter('Which page, from 1', { default: 1 })
  @Min(1)
  @Max(MAX_PAGE)
  page: number = 1;

  @IntegerParameter('Entries on a page', { default: 100 })
  @Min(1)
  @Max(500)
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

type Trait = (typeof GAME_TRAITS)[number];

/** An entry with its game, as the statements select it. */
export interface CollectionGameRow {
  words: string;
  blurb: string | null;
  title: string;
  short_text: string | null;
  cover_url: string | null;
}

type EntryWords = [
  game_id: string,
  position: string,
  user_id: string,
  created_at: string,
  owner_name: string,
  slug: string,
  type: EmbeddedGameAnswer['type'],
  classification: EmbeddedGameAnswer['classification'],
  traits: string,
  min_price: string,
  game_created_at: string,
  published_at?: string,
];

/** The columns of a row for the entry `e` and its game `g`. */
export const entryColumns = (position: string, blurb = 'e.blurb') => `
  ${words(
    'e.game_id',
    position,
    'e.user_id',
    'e.created_at',
    'g.owner_name',
    'g.slug',
    'g.type',
    'g.classification',
    'g.traits',
    'g.min_price',
    'g.created_at',
    'g.published_at',
  )}, ${blurb}, g.title, g.short_text, g.cover_url`;

export const gameIdOf = ({ words }: CollectionGameRow) => Number(words.slice(0, words.indexOf('|')));

export function collectionGameAnswer(
  collection_id: number,
  row: CollectionGameRow,
  links: StoreLinks,
): CollectionGameAnswer {
  const [
    game,
    position,
    user,
    created_at,
    owner_name,
    slug,
    type,
    classification,
    traits,
    min_price,
    game_created_at,
    published_at,
  ] = wordsOf<EntryWords>(row.words);
  const game_id = Number(game);
  return {
    collection_id,
    game_id,
    position: Number(position),
    blurb: row.blurb,
    user_id: Number(user),
    created_at: modernTimestamp(created_at),
    game: {
      id: game_id,
      title: row.title,
      short_text: row.short_text,
      url: links.game(owner_name, slug),
      cover_url: row.cover_url,
      type,
      classification,
      traits: listOf(traits) as Trait[],
      min_price: Number(min_price),
      published_at: published_at === undefined ? null : modernTimestamp(published_at),
      created_at: modernTimestamp(game_created_at),
    },
  };
}
