import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { StoreLinks } from '../platform/config/store-links';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { GameRequest, gameWithUserResponse, OneGameResponse } from './embedded-game.dto';
import { GamesService } from './games.service';

@ApiTags('Games')
@Controller('games')
export class GamesController {
  constructor(
    private readonly games: GamesService,
    private readonly links: StoreLinks,
  ) {}

  @Get(':game_id')
  @ApiOperation({ summary: 'Get a game' })
  @Scopes('game:view', 'game:view:ownership', 'game:view:uploads')
  @ApiOkResponse({ type: OneGameResponse })
  @Fails(404, 'invalid game')
  async game(
    @Params() { game_id }: GameRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<OneGameResponse> {
    return { game: gameWithUserResponse(await this.games.find(game_id, user_id), this.links) };
  }
}
