import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../config/store-links';
import { modernTimestamp } from '../formats/timestamps';
import { IntegerParameter } from '../http/parameters';
import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES } from './game.entity';
import type { EmbeddedGameRow, GameWithUserRow } from './game-row';

export class GameRequest {
  @IntegerParameter('The game', { in: 'path' })
  game_id: number;
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

/** Who uploaded a game. */
export class GameUserAnswer {
  @ApiProperty({ type: 'integer', format: 'int64', example: 29789 })
  id: number;

  @ApiProperty({ example: 'leaf' })
  username: string;

  @ApiProperty({ example: 'Leaf', description: 'Without one the username' })
  display_name: string;

  @ApiProperty({ format: 'uri', example: 'https://leaf.gamewharf.example' })
  url: string;

  @ApiProperty({ type: String, format: 'uri', nullable: true })
  cover_url: string | null;
}

export class GameWithUserAnswer extends EmbeddedGameAnswer {
  @ApiProperty({ description: 'Who uploaded it' })
  user: GameUserAnswer;
}

export class OneGameAnswer {
  @ApiProperty()
  game: GameWithUserAnswer;
}

export const embeddedGameAnswer = (row: EmbeddedGameRow, links: StoreLinks): EmbeddedGameAnswer => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: links.game(row.owner_name, row.slug),
  cover_url: row.cover_url,
  type: row.type,
  classification: row.classification,
  traits: row.traits,
  min_price: row.min_price,
  published_at: row.published_at && modernTimestamp(row.published_at),
  created_at: modernTimestamp(row.created_at),
});

export const gameUserAnswer = (row: GameWithUserRow, links: StoreLinks): GameUserAnswer => ({
  id: row.owner_id,
  username: row.username,
  display_name: row.display_name || row.username,
  url: links.user(row.username),
  cover_url: row.owner_cover_url,
});

export const gameWithUserAnswer = (row: GameWithUserRow, links: StoreLinks): GameWithUserAnswer => ({
  ...embeddedGameAnswer(row, links),
  user: gameUserAnswer(row, links),
});
