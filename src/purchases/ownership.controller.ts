import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access';
import { type Credential, CurrentCredential } from '../auth/credential';
import { StoreLinks } from '../platform/config/store-links';
import { GameRequest } from '../games/embedded-game.dto';
import { Fails } from '../platform/http/routes';
import { Params } from '../platform/http/params.decorator';
import { ownedKeyAnswer, OwnedKeysResponse, OwnedKeysRequest, OwnershipResponse } from './owned-key.dto';
import { OwnedKeysService } from './owned-keys.service';
import { OwnershipService } from './ownership.service';

@Controller()
export class OwnershipController {
  constructor(
    private readonly owned_keys: OwnedKeysService,
    private readonly ownership: OwnershipService,
    private readonly links: StoreLinks,
  ) {}

  @Get('profile/owned-keys')
  @ApiTags('Profile')
  @ApiOperation({
    summary: 'The keys of the user, with their games',
    description: 'Bought, claimed or given; newest first. The text of a key is not in the answer.',
  })
  @Scopes('profile:owned')
  @ApiOkResponse({ type: OwnedKeysResponse })
  async ownedKeys(
    @Params() request: OwnedKeysRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<OwnedKeysResponse> {
    const rows = await this.owned_keys.page(user_id, request);
    const { page, per_page } = request;
    return { page, per_page, owned_keys: rows.map((row) => ownedKeyAnswer(row, this.links)) };
  }

  @Get('games/:game_id/ownership')
  @ApiTags('Games')
  @ApiOperation({
    summary: 'Whether the user of the credential owns the game',
    description:
      "An API key that a user made asks about any game that the user may view or owns; a game's JWT about that game; " +
      "an application's token about games that the application's owner can edit.",
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
}
