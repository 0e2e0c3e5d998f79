import { ApiProperty } from '@nestjs/swagger';
import { IntegerField, NullableText } from '../../platform/openapi/fields';
import { ValidateBy, ValidateIf } from 'class-validator';
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
} from '../../platform/input/parameters';
import type { KeyPages } from '../../platform/server/key-pages';
import { KeyUrl } from '../keys/download-key.dto';
import { purchaseResponse, PurchaseObject } from '../purchase.dto';
import { type Purchase, PURCHASE_STATUSES, PURCHASE_TYPES } from '../purchase.entity';
import type { SaleRow } from './sale-statements';

const InPlaceOfGame = () =>
  ValidateBy({
    name: 'inPlaceOfGame',
    validator: {
      validate: (_, args) => (args!.object as SaleRequest).game_id === undefined,
      defaultMessage: () => 'exactly one of game_id, bundle_id is required',
    },
  });

const isOfGame = ({ game_id, bundle_id }: SaleRequest) => bundle_id === undefined && !Array.isArray(game_id);

const SuitsGames = () =>
  ValidateBy({
    name: 'suitsGames',
    validator: {
      validate: (type, args) => type === 'bundle' || isOfGame(args!.object as SaleRequest),
      defaultMessage: (args) =>
        `purchase_type must be bundle when ${(args!.object as SaleRequest).bundle_id === undefined ? 'game_id is a list' : 'bundle_id is sent'}`,
    },
  });

@AtLeastOneOf('user_id', 'email')
export class SaleRequest {
  @ApiProperty({ required: false })
  @ValidateIf(({ game_id, bundle_id }: SaleRequest) => game_id !== undefined || bundle_id === undefined)
  @IdOrIds('ID of the sold game, or a JSON array of IDs for several games. Required without `bundle_id`')
  game_id?: number | number[];

  @Id('ID of the sold bundle, in place of `game_id`. Its games at this time become those of the purchase', {
    required: false,
  })
  @InPlaceOfGame()
  bundle_id?: number;

  @Id('ID of the buyer. Without `email`, the verified email address of the account is used', {
    required: false,
  })
  user_id?: number;

  @EmailAddress('Email address of the buyer', { example: 'someone@example.com', required: false })
  @MaxCharacters(254)
  email?: string;

  @NonEmptyText('ISO 4217 code', { example: 'USD' })
  @OneOf(CURRENCIES, '$property must be an ISO 4217 code such as USD')
  currency: string;

  @Amount('Total price in minor units, such as cents; 0 if free', {
    example: 499,
  })
  amount: number;

  @NonEmptyText('Where or how the buyer paid; for information only', { default: 'store' })
  @MaxCharacters(50)
  source: string = 'store';

  @NonEmptyText(
    "The checkout's unique ID for the sale, such as an order number. A repeated request with the same values returns the same response and doesn't sell again",
    { example: 'order-10045', required: false },
  )
  @MaxCharacters(200)
  reference?: string;

  @Decimal('Discount in percent', { default: 0 })
  @Between(0, 100)
  sale_rate: number = 0;

  @Id('Number of copies', { default: 1 })
  @Between(1, 2147483647)
  quantity: number = 1;

  @Flag('Purchase without a download key, unless `with_key` is true', { default: false })
  donation: boolean = false;

  @NonEmptyText('Defaults to `bundle` for a bundle or a list of games, otherwise to `game`', {
    required: false,
  })
  @OneOf(PURCHASE_TYPES)
  @SuitsGames()
  purchase_type?: Purchase['purchase_type'];

  @Timestamp('Time of the purchase; defaults to now', { required: false })
  created_at?: string;

  @Flag(
    'Whether to create a download key for each game; defaults to true, except for donations and for `bundle_id`, whose games are claimed one by one',
    { required: false },
  )
  with_key?: boolean;
}

export class RefundRequest {
  @Id('ID of the purchase')
  purchase_id: number;

  @Flag('Whether the buyer keeps the download keys', { default: false })
  keep_keys: boolean = false;
}

export class SoldPurchaseObject extends PurchaseObject {
  @ApiProperty({ enum: PURCHASE_STATUSES, description: 'Status of the purchase' })
  declare status: Purchase['status'];

  @NullableText("The checkout's unique ID for the sale; null if it sent none", 'order-10045')
  reference: string | null;
}

export class NewKeyObject {
  @IntegerField('ID of the key')
  id: number;

  @IntegerField('ID of the game')
  game_id: number;

  @ApiProperty({
    description: 'The key itself, which gives access to the game',
    example: 'gwdl_sTw4nRkZbq1XoVu8sTw4nRkZ',
  })
  key: string;

  @KeyUrl()
  url: string | null;
}

export class SaleResponse {
  @ApiProperty({ type: SoldPurchaseObject, description: 'The purchase in its current state' })
  purchase: SoldPurchaseObject;

  @ApiProperty({ type: [NewKeyObject], description: 'One key for each game, in the order of the game IDs' })
  download_keys: NewKeyObject[];
}

export class RefundResponse {
  @ApiProperty({ type: SoldPurchaseObject, description: 'The purchase in its current state' })
  purchase: SoldPurchaseObject;
}

export const refundResponse = (row: SaleRow): RefundResponse => ({
  purchase: { ...purchaseResponse(row, row.all_game_ids[0]!), reference: row.reference },
});

export const saleResponse = (row: SaleRow, pages: KeyPages): SaleResponse => ({
  ...refundResponse(row),
  download_keys: row.keys.map((one) => ({ ...one, url: pages.url(one.key) })),
});
