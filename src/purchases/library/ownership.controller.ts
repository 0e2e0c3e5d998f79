import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { StoreLinks } from '../../platform/config/store-links';
import { GameRequest } from '../../games/embedded-game.dto';
import { Fails } from '../../platform/server/routes';
import { Params } from '../../platform/input/params.decorator';
import { ownedKeyResponse, OwnedKeysResponse, OwnedKeysRequest, OwnershipResponse } from './owned-key.dto';
import { OwnershipService } from './ownership.service';

@ApiTags('Ownership')
@Controller()
export class OwnershipController {
  constructor(
    private readonly ownership: OwnershipService,
    private readonly links: StoreLinks,
  ) {}

  @Get('games/:game_id/ownership')
  @ApiOperation({
    summary: 'Check whether the user owns a game',
    description:
      "An API key can check any game that its user can view or owns, a game's JWT only that game, and an app's " +
      "token only games that the app's owner can edit.",
  })
  @Scopes('game:view:ownership')
  @ApiOkResponse({ type: OwnershipResponse })
  @Fails(404, 'invalid game')
  async owns(
    @Params() { game_id }: GameRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OwnershipResponse> {
    return { owns: await this.ownership.owns(game_id, credential) };
  }

  @Get('profile/owned-keys')
  @ApiOperation({
    summary: 'List the games that the user owns',
    description:
      'Purchased and claimed download keys with their games, newest first. The response omits the text of the keys.',
  })
  @Scopes('profile:owned')
  @ApiOkResponse({ type: OwnedKeysResponse })
  async ownedKeys(
    @Params() request: OwnedKeysRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<OwnedKeysResponse> {
    const rows = await this.ownership.ownedKeys(user_id, request);
    const { page, per_page } = request;
    return { page, per_page, owned_keys: rows.map((row) => ownedKeyResponse(row, this.links)) };
  }
}
