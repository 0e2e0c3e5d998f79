import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access';
import { type Credential, CurrentCredential } from '../auth/credential';
import { StoreLinks } from '../platform/config/store-links';
import { type LongList, LongLists } from '../platform/http/long-lists';
import { Fails } from '../platform/http/routes';
import { Params } from '../platform/http/params.decorator';
import { DownloadKeyResponse, downloadKeyAnswer, DownloadKeyRequest } from './download-key.dto';
import { DownloadKeysService } from './download-keys.service';
import { purchaseAnswer, PurchasesResponse, PurchasesRequest } from './purchase.dto';
import type { PurchaseRow } from './purchase.row';
import { PurchasesService } from './purchases.service';
import { LimitFailedLookups } from '../platform/rate-limits/rate-limits.decorators';

@ApiTags('Purchases')
@Controller('games/:game_id')
export class PurchasesController {
  constructor(
    private readonly download_keys: DownloadKeysService,
    private readonly purchases: PurchasesService,
    private readonly lists: LongLists,
    private readonly links: StoreLinks,
  ) {}

  @Get('download_keys')
  @ApiOperation({
    summary: 'Whether somebody owns the game',
    description: 'Looks up a key, purchased or claimed; the newest where there are several.',
  })
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ApiOkResponse({ type: DownloadKeyResponse })
  @Fails(404, 'invalid game', 'invalid download key', 'no download key found')
  async downloadKey(
    @Params() request: DownloadKeyRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<DownloadKeyResponse> {
    const row = await this.download_keys.find(request, user_id);
    return { download_key: downloadKeyAnswer(row, this.links) };
  }

  @Get('purchases')
  @ApiOperation({
    summary: 'What somebody bought of the game',
    description:
      'Completed purchases, newest first, under all linked verified addresses. An unknown address has none.',
  })
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ApiOkResponse({ type: PurchasesResponse })
  @Fails(404, 'invalid game')
  async purchasesOf(
    @Params() request: PurchasesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<PurchasesResponse | LongList<PurchaseRow>> {
    const rows = await this.purchases.find(request, user_id);
    return this.lists.answer('purchases', rows, (row) => purchaseAnswer(row, request.game_id));
  }
}
