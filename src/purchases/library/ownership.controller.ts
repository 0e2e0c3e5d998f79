import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { StoreLinks } from '../../platform/config/store-links';
import { ProofsService } from '../../auth/jwt/proofs.service';
import { Fails } from '../../platform/server/routes';
import { Params } from '../../platform/input/params.decorator';
import {
  ownedKeyResponse,
  OwnedKeysResponse,
  OwnedKeysRequest,
  OwnershipRequest,
  OwnershipResponse,
} from './owned-key.dto';
import { OwnershipService } from './ownership.service';

@ApiTags('Ownership')
@Controller()
export class OwnershipController {
  constructor(
    private readonly ownership: OwnershipService,
    private readonly proofs: ProofsService,
    private readonly links: StoreLinks,
  ) {}

  @Get('games/:game_id/ownership')
  @ApiOperation({
    summary: 'Check whether the user owns a game',
    description:
      "An API key can check any game that its user can view or owns, a game's JWT only that game, and an app's " +
      "token only games that the app's owner can edit. A signed proof can be verified offline, until it expires.",
  })
  @Scopes('game:view:ownership')
  @ApiOkResponse({ type: OwnershipResponse })
  @Fails(404, 'invalid game')
  async owns(
    @Params() { game_id, proof }: OwnershipRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<OwnershipResponse> {
    const { via } = await this.ownership.ownership(game_id, credential);
    if (via === null) return { owns: false };
    if (!proof) return { owns: true };
    return { owns: true, proof: await this.proofs.issue({ user_id: credential.user_id, game_id, via }) };
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
