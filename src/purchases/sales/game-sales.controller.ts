import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { StoreLinks } from '../../platform/config/store-links';
import { ListStreams, type LongResponse } from '../../platform/output/list-streams';
import { Fails } from '../../platform/server/routes';
import { Params } from '../../platform/input/params.decorator';
import { gameSaleResponse, GameSalesResponse, GameSalesRequest } from './game-sale.dto';
import { GameSalesService } from './game-sales.service';

@ApiTags('Purchases')
@Controller('games/:game_id')
export class GameSalesController {
  constructor(
    private readonly sales: GameSalesService,
    private readonly lists: ListStreams,
    private readonly links: StoreLinks,
  ) {}

  @Get('sales')
  @ApiOperation({
    summary: "List a game's sales",
    description:
      'Completed and refunded purchases, newest first, with their buyers and keys. To follow new sales, set `since` to the ' +
      '`created_at` of the newest sale that you have, and skip the IDs that you know.',
  })
  @Scopes('game:view:purchases')
  @ApiOkResponse({ type: GameSalesResponse })
  @Fails(404, 'invalid game')
  async page(
    @Params() { game_id, since, page, per_page }: GameSalesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<GameSalesResponse | LongResponse> {
    const offset = (page - 1) * per_page;
    const rows = await this.sales.find(game_id, user_id, { since, limit: per_page, offset });
    const head = { page, per_page };
    return this.lists.response('sales', rows, (row) => gameSaleResponse(row, game_id, this.links), head);
  }
}
