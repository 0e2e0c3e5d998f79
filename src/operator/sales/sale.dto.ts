import { ApiProperty } from '@nestjs/swagger';
import { ValidateBy } from 'class-validator';
import { CURRENCIES } from '../../platform/formats/money';
import {
  Amount,
  AtLeastOneOf,
  Between,
  Flag,
  EmailAddress,
  IdOrIds,
  Id,
  MaxCharacters,
  Decimal,
  NonEmptyText,
  OneOf,
  Timestamp,
} from '../../platform/http/parameters';
import { purchaseAnswer, PurchaseObject } from '../../purchases/purchase.dto';
import { type Purchase, PURCHASE_STATUSES, PURCHASE_TYPES } from '../../purchases/purchase.entity';
import type { SaleRow } from './sale-statements';

const SuitsGames = () =>
  ValidateBy({
    name: 'suitsGames',
    validator: {
      validate: (type, args) => type === 'bundle' || !Array.isArray((args!.object as SaleRequest).game_id),
      defaultMessage: () => 'purchase_type must be bundle when game_id is a list',
    },
  });

@AtLeastOneOf('user_id', 'email')
export class SaleRequest {
  @IdOrIds('The game that is sold; a JSON array of ids is a bundle')
  game_id: number | number[];

  @Id('The account that buys. Without an email, its verified address is taken', { required: false })
  user_id?: number;

  @EmailAddress('Email address of the buyer', { example: 'someone@example.com', required: false })
  @MaxCharacters(254)
  email?: string;

  @NonEmptyText('ISO 4217 code', { example: 'USD' })
  @OneOf(CURRENCIES, '$property must be an ISO 4217 code such as USD')
  currency: string;

  @Amount('What was paid in all, in whole minor units such as cents; 0 for free', {
    example: 499,
  })
  amount: number;

  @NonEmptyText('How it was paid', { default: 'store' })
  @MaxCharacters(50)
  source: string = 'store';

  @NonEmptyText(
    "The checkout's unique name for the sale. A repeated request with the same values returns the same response and sells nothing",
    { example: 'order-10045', required: false },
  )
  @MaxCharacters(200)
  reference?: string;

  @Decimal('Percent off the price', { default: 0 })
  @Between(0, 100)
  sale_rate: number = 0;

  @Id('How many were bought', { default: 1 })
  @Between(1, 2147483647)
  quantity: number = 1;

  @Flag('No download key comes with it, unless with_key says so', { default: false })
  donation: boolean = false;

  @NonEmptyText('bundle where game_id is a list, otherwise game', { required: false })
  @OneOf(PURCHASE_TYPES)
  @SuitsGames()
  purchase_type?: Purchase['purchase_type'];

  @Timestamp('When it was bought; now, where it is left out', { required: false })
  created_at?: string;

  @Flag('Whether each game gets a download key; true, unless it is a donation', { required: false })
  with_key?: boolean;
}

export class RefundRequest {
  @Id('The purchase to take back')
  purchase_id: number;

  @Flag('Leave the buyer the download keys', { default: false })
  keep_keys: boolean = false;
}

export class SoldPurchaseObject extends PurchaseObject {
  @ApiProperty({ enum: PURCHASE_STATUSES, description: 'complete, or refunded once it was taken back' })
  declare status: Purchase['status'];

  @ApiProperty({
    type: String,
    nullable: true,
    description: "The checkout's own name for the sale",
    example: 'order-10045',
  })
  reference: string | null;
}

export class NewKeyObject {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Its id' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'The game that it opens' })
  game_id: number;

  @ApiProperty({
    description: 'What the buyer downloads the game with',
    example: 'gwdl_sTw4nRkZbq1XoVu8sTw4nRkZ',
  })
  key: string;
}

export class SaleResponse {
  @ApiProperty({ type: SoldPurchaseObject, description: 'The purchase, as it is stored now' })
  purchase: SoldPurchaseObject;

  @ApiProperty({ type: [NewKeyObject], description: 'One for each game, by the ids of the games' })
  download_keys: NewKeyObject[];
}

export class RefundResponse {
  @ApiProperty({ type: SoldPurchaseObject, description: 'The purchase, as it is stored now' })
  purchase: SoldPurchaseObject;
}

export const refundAnswer = (row: SaleRow): RefundResponse => ({
  purchase: { ...purchaseAnswer(row, row.all_game_ids[0]!), reference: row.reference },
});

export const saleAnswer = (row: SaleRow): SaleResponse => ({
  ...refundAnswer(row),
  download_keys: row.keys,
});
