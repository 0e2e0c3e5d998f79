import { ApiProperty } from '@nestjs/swagger';
import { EnumField, IntegerField, TimeField } from '../platform/openapi/fields';
import { formatMoney } from '../platform/formats/money';
import { LookupEmail, ExactlyOneOf, Id } from '../platform/input/parameters';
import { modernTimestamp } from '../platform/formats/timestamps';
import { type Purchase, PURCHASE_TYPES } from './purchase.entity';
import type { PurchaseRow } from './purchase.row';

@ExactlyOneOf('email', 'user_id')
export class PurchasesRequest {
  @Id('ID of a game that the user can edit')
  game_id: number;

  @LookupEmail('Email address of the buyer. Verify first that it belongs to your user', {
    required: false,
  })
  email?: string;

  @Id('ID of the buyer', { required: false })
  user_id?: number;
}

export class PurchaseObject {
  @IntegerField('ID of the purchase')
  id: number;

  @ApiProperty({ description: 'Whether the purchase has no download key' })
  donation: boolean;

  @ApiProperty({ description: 'Email address of the buyer' })
  email: string;

  @TimeField('Time of the purchase')
  created_at: string;

  @ApiProperty({ description: 'Where or how the buyer paid' })
  source: string;

  @ApiProperty({ description: 'ISO 4217 code', example: 'USD' })
  currency: string;

  @ApiProperty({ description: 'Price formatted for the `en-US` locale', example: '$5.00' })
  price: string;

  @ApiProperty({ description: 'Discount in percent' })
  sale_rate: number;

  @ApiProperty({ type: 'integer', description: 'Number of copies' })
  quantity: number;

  @EnumField(['complete'], 'Status of the purchase; only completed purchases are listed')
  status: Purchase['status'];

  @EnumField(PURCHASE_TYPES, 'Type of the product: a game, a bundle, or part of a game')
  purchase_type: (typeof PURCHASE_TYPES)[number];

  @ApiProperty({
    oneOf: [
      { type: 'integer', format: 'int64' },
      { type: 'array', items: { type: 'integer', format: 'int64' } },
    ],
    description: 'ID of the game; for a bundle, the IDs of its games in ascending order',
  })
  game_id: number | number[];
}

export class PurchasesResponse {
  @ApiProperty({ type: [PurchaseObject], description: 'Completed purchases, newest first' })
  purchases: PurchaseObject[];
}

export const purchaseResponse = (row: PurchaseRow, game_id: number): PurchaseObject => ({
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
