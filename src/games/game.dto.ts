import { ApiProperty } from '@nestjs/swagger';
import { IntegerField } from '../platform/openapi/fields';
import type { StoreLinks } from '../platform/config/store-links';
import { formatMoney } from '../platform/formats/money';
import { modernTimestamp } from '../platform/formats/timestamps';
import { EmbeddedGameResponse } from './embedded-game.dto';
import type { GameRow } from './game.row';

export class EarningResponse {
  @ApiProperty({ description: 'ISO 4217 code', example: 'USD' })
  currency: string;

  @ApiProperty({ description: 'Amount formatted for the `en-US` locale', example: '$50.47' })
  amount_formatted: string;

  @IntegerField('Amount in minor units, such as cents', 5047)
  amount: number;
}

export class GameResponse extends EmbeddedGameResponse {
  @ApiProperty({ description: 'Whether the game is published' })
  published: boolean;

  @IntegerField('Number of page views')
  views_count: number;

  @IntegerField('Number of downloads')
  downloads_count: number;

  @IntegerField('Number of completed purchases, including bundles')
  purchases_count: number;

  @ApiProperty({ type: [EarningResponse], description: 'Earnings by currency, in alphabetical order' })
  earnings: EarningResponse[];
}

function earningResponse(earning: string): EarningResponse {
  const currency = earning.slice(0, 3);
  const amount = Number(earning.slice(3));
  return { currency, amount_formatted: formatMoney(amount, currency), amount };
}

/** The fields that the legacy response has in the same format. */
export const sharedGameFields = (row: GameRow) => ({
  min_price: row.min_price,
  views_count: row.views_count,
  downloads_count: row.downloads_count,
  purchases_count: row.purchases_count,
  earnings: row.earnings.map(earningResponse),
});

/** Has the documented order of fields, which differs from that of an embedded game. */
export const gameResponse = (row: GameRow, links: StoreLinks): GameResponse => ({
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
  ...sharedGameFields(row),
});
