import { ApiProperty } from '@nestjs/swagger';
import { formatMoney } from '../platform/formats/money';
import { LookupEmail, ExactlyOneOf, Id } from '../platform/http/parameters';
import { modernTimestamp } from '../platform/formats/timestamps';
import { type Purchase, PURCHASE_TYPES } from './purchase.entity';
import type { PurchaseRow } from './purchase.row';

@ExactlyOneOf('email', 'user_id')
export class PurchasesRequest {
  @Id('A game that the caller can edit')
  game_id: number;

  @LookupEmail('The address to look up; the caller has made sure that it is the address of whom it serves', {
    required: false,
  })
  email?: string;

  @Id('The user to look up', { required: false })
  user_id?: number;
}

export class PurchaseObject {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'The purchase' })
  id: number;

  @ApiProperty({ description: 'No download key came with it' })
  donation: boolean;

  @ApiProperty({ description: 'The address that it was made with' })
  email: string;

  @ApiProperty({ format: 'date-time', description: 'When it was made' })
  created_at: string;

  @ApiProperty({ description: 'How it was paid' })
  source: string;

  @ApiProperty({ description: 'ISO 4217 code', example: 'USD' })
  currency: string;

  @ApiProperty({ description: 'As American English displays it', example: '$5.00' })
  price: string;

  @ApiProperty({ description: 'Percent off the price' })
  sale_rate: number;

  @ApiProperty({ type: 'integer', description: 'How many copies were bought' })
  quantity: number;

  @ApiProperty({ enum: ['complete'], description: 'Only completed purchases are listed' })
  status: Purchase['status'];

  @ApiProperty({
    enum: PURCHASE_TYPES,
    description: 'Whether a game, a bundle or a part of a game was bought',
  })
  purchase_type: (typeof PURCHASE_TYPES)[number];

  @ApiProperty({
    oneOf: [
      { type: 'integer', format: 'int64' },
      { type: 'array', items: { type: 'integer', format: 'int64' } },
    ],
    description: 'For a bundle all games in it, ascending',
  })
  game_id: number | number[];
}

export class PurchasesResponse {
  @ApiProperty({ type: [PurchaseObject], description: 'Newest first; empty: none was completed' })
  purchases: PurchaseObject[];
}

export const purchaseAnswer = (row: PurchaseRow, game_id: number): PurchaseObject => ({
  id: row.id,
  donation: row.donation,
  email: row.email,
  created_at: modernTimestamp(row.created_at),
  source: row.source,
  currency: row.currency,
  price: formatMoney(row.amount, row.currency),
  sale_rate: row.sale_rate,
  quantity: row.quantity,
  status: row.status,
  purchase_type: row.purchase_type,
  game_id: row.game_ids ?? game_id,
});
