import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { ListStreams, type LongResponse } from '../platform/output/list-streams';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { purchaseResponse, PurchasesResponse, PurchasesRequest } from './purchase.dto';
import { PurchasesService } from './purchases.service';
import { LimitFailedLookups } from '../platform/limits/rate-limits.decorators';

@ApiTags('Ownership')
@Controller('games/:game_id')
export class PurchasesController {
  constructor(
    private readonly purchases: PurchasesService,
    private readonly lists: ListStreams,
  ) {}

  @Get('purchases')
  @ApiOperation({
    summary: "List a buyer's purchases",
    description:
      'Completed purchases of the game, newest first, under all verified email addresses of the account. The list is empty for an unknown email address.',
  })
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ApiOkResponse({ type: PurchasesResponse })
  @Fails(404, 'invalid game')
  async purchasesOf(
    @Params() request: PurchasesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<PurchasesResponse | LongResponse> {
    const rows = await this.purchases.find(request, user_id);
    return this.lists.response('purchases', rows, (row) => purchaseResponse(row, request.game_id));
  }
}
