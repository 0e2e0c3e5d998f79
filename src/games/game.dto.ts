import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../config/store-links';
import { formatMoney } from '../formats/money';
import { modernTimestamp } from '../formats/timestamps';
import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES } from './game.entity';
import type { GameRow } from './game-row';

export class EarningAnswer {
  @ApiProperty({ description: 'ISO 4217 code', example: 'USD' })
  currency: string;

  @ApiProperty({ description: 'As American English displays it', example: '$50.47' })
  amount_formatted: string;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'In minor units', example: 5047 })
  amount: number;
}

export class GameAnswer {
  @ApiProperty({ type: 'integer', format: 'int64', example: 3, description: 'The game' })
  id: number;

  @ApiProperty({ example: 'X-Moon', description: 'The name that players see' })
  title: string;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'Humans have been colonizing planets',
    description: 'One line about the game; null: none',
  })
  short_text: string | null;

  @ApiProperty({
    format: 'uri',
    example: 'https://leaf.gamewharf.example/x-moon',
    description: 'Its page in the store',
  })
  url: string;

  @ApiProperty({ type: String, format: 'uri', nullable: true, description: 'Its picture; null: none' })
  cover_url: string | null;

  @ApiProperty({
    enum: GAME_TYPES,
    description: 'How it is played: `html` and the like in a browser, `default` after a download',
  })
  type: (typeof GAME_TYPES)[number];

  @ApiProperty({ enum: GAME_CLASSIFICATIONS, description: 'What kind of thing it is' })
  classification: (typeof GAME_CLASSIFICATIONS)[number];

  @ApiProperty({ enum: GAME_TRAITS, isArray: true, description: 'Platforms (`p_...`) and how it is offered' })
  traits: (typeof GAME_TRAITS)[number][];

  @ApiProperty({ description: 'Whether it is published' })
  published: boolean;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'null: not published' })
  published_at: string | null;

  @ApiProperty({ format: 'date-time', description: 'When it was made' })
  created_at: string;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'In minor units; 0: free' })
  min_price: number;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'How often its page was opened' })
  views_count: number;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'How often it was downloaded' })
  downloads_count: number;

  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Completed purchases, those of bundles with the game included',
  })
  purchases_count: number;

  @ApiProperty({ type: [EarningAnswer], description: 'By currency, in alphabetical order' })
  earnings: EarningAnswer[];
}

function earningAnswer(earning: string): EarningAnswer {
  const currency = earning.slice(0, 3);
  const amount = Number(earning.slice(3));
  return { currency, amount_formatted: formatMoney(amount, currency), amount };
}

/** The same in the legacy answer. */
export const gameFigures = (row: GameRow) => ({
  min_price: row.min_price,
  views_count: row.views_count,
  downloads_count: row.downloads_count,
  purchases_count: row.purchases_count,
  earnings: row.earnings.map(earningAnswer),
});

export const gameAnswer = (row: GameRow, links: StoreLinks): GameAnswer => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: links.game(row.owner_name, row.slug),
  cover_url: row.cover_url,
  type: row.type,
  classification: row.classification,
  traits: row.traits,
  published: row.published_at !== null,
  published_at: row.published_at && modernTimestamp(row.published_at),
  created_at: modernTimestamp(row.created_at),
  ...gameFigures(row),
});
