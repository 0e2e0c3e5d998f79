import { ApiProperty, OmitType, PickType } from '@nestjs/swagger';
import { EnumField, IntegerField, NullableObject } from '../../platform/openapi/fields';
import type { StoreLinks } from '../../platform/config/store-links';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { PageResponse, Page, PerPage } from '../../platform/input/paging';
import { Id, Timestamp } from '../../platform/input/parameters';
import { UserResponse, userResponse } from '../../users/user.dto';
import { DownloadKeyObject } from '../keys/download-key.dto';
import type { GameSaleRow } from './game-sales.service';
import { purchaseResponse, PurchaseObject } from '../purchase.dto';

export class GameSalesRequest {
  @Id('ID of a game that the user can edit')
  game_id: number;

  @Timestamp('Only sales at this time or later', { required: false })
  since?: string;

  @Page()
  page: number = 1;

  @PerPage('Number of sales per page', 100)
  per_page: number = 100;
}

export class SoldKeyObject extends PickType(DownloadKeyObject, ['id', 'created_at', 'downloads']) {
  @ApiProperty({ example: false, description: 'Whether the key was revoked' })
  revoked: boolean;

  @NullableObject(UserResponse, 'Account that claimed the key; null if it is not claimed')
  claimed_by: UserResponse | null;
}

export class SaleObject extends OmitType(PurchaseObject, ['status'] as const) {
  @IntegerField('Price in minor units, such as cents', 500)
  amount: number;

  @EnumField(['complete', 'refunded'], 'Status of the purchase')
  status: 'complete' | 'refunded';

  @NullableObject(
    UserResponse,
    'Account of the buyer, or the one that verified the email address; null if there is none',
  )
  user: UserResponse | null;

  @NullableObject(SoldKeyObject, 'Newest key of the game from this purchase; null if there is none')
  download_key: SoldKeyObject | null;
}

export class GameSalesResponse extends PageResponse {
  @ApiProperty({ type: [SaleObject], description: 'Newest first' })
  sales: SaleObject[];
}

export function gameSaleResponse(
  { buyer, key, status, ...row }: GameSaleRow,
  game_id: number,
  links: StoreLinks,
) {
  const { status: _, ...purchase } = purchaseResponse({ ...row, status: 'complete' }, game_id);
  return {
    ...purchase,
    amount: row.amount,
    status,
    user: buyer && userResponse(buyer, links),
    download_key: key && {
      ...key,
      created_at: modernTimestamp(key.created_at),
      claimed_by: key.claimed_by && userResponse(key.claimed_by, links),
    },
  } satisfies SaleObject;
}
