import { Controller, Get, Req } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { AnyCredential, Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { StoreLinks } from '../platform/config/store-links';
import { GameRequest } from '../games/embedded-game.dto';
import { GamesService } from '../games/games.service';
import { ListStreams, type LongResponse } from '../platform/output/list-streams';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { ProfileResponse } from '../profile/profile.dto';
import { DownloadKeyRequest } from '../purchases/keys/download-key.dto';
import { DownloadKeysService } from '../purchases/keys/download-keys.service';
import { OwnedKeysRequest } from '../purchases/library/owned-key.dto';
import { OwnershipService } from '../purchases/library/ownership.service';
import { PurchasesRequest } from '../purchases/purchase.dto';
import { PurchasesService } from '../purchases/purchases.service';
import { DownloadsService } from '../uploads/downloads.service';
import { DownloadUploadRequest, UploadsRequest } from '../uploads/download.dto';
import { UploadsService } from '../uploads/uploads.service';
import { userResponse } from '../users/user.dto';
import { UsersService } from '../users/users.service';
import {
  legacyCredentialsInfo,
  LegacyCredentialsInfoResponse,
  LegacyDownloadResponse,
  legacyDownloadKey,
  LegacyDownloadKeyResponse,
  legacyGame,
  LegacyGamesResponse,
  legacyGameWithUser,
  LegacyOneGameResponse,
  legacyOwnedKey,
  LegacyOwnedKeysResponse,
  legacyPurchase,
  LegacyPurchasesResponse,
  legacyUpload,
  LegacyUploadsResponse,
} from './legacy.dto';
import { DownloadCost } from '../uploads/download-cost';
import { LimitFailedLookups } from '../platform/limits/rate-limits.decorators';

const ReplacedBy = (path: string, summary: string) =>
  ApiOperation({ deprecated: true, summary, description: `Replaced by \`${path}\`.` });

/** The first version of this API: other names and formats for the same services. */
@ApiTags('Legacy')
@ApiParam({
  name: 'KEY',
  description:
    '`key` or `jwt`: the Authorization header contains an API key or a JWT; anything else: the API key itself',
  schema: { type: 'string', minLength: 1 },
  example: 'key',
})
@Controller('api/1/:KEY')
export class LegacyController {
  constructor(
    private readonly users: UsersService,
    private readonly games: GamesService,
    private readonly download_keys: DownloadKeysService,
    private readonly ownership: OwnershipService,
    private readonly purchases: PurchasesService,
    private readonly uploads: UploadsService,
    private readonly downloads: DownloadsService,
    private readonly lists: ListStreams,
    private readonly links: StoreLinks,
  ) {}

  @Get('credentials/info')
  @AnyCredential()
  @ReplacedBy('/credentials/info', 'Get the type and scopes of the credential')
  @ApiOkResponse({ type: LegacyCredentialsInfoResponse })
  credentialsInfo(@CurrentCredential() credential: Credential): LegacyCredentialsInfoResponse {
    return legacyCredentialsInfo(credential);
  }

  @Get('me')
  @Scopes('profile:me')
  @ReplacedBy('/profile', "Get the user's profile")
  @ApiOkResponse({ type: ProfileResponse })
  async me(@CurrentCredential() credential: Credential): Promise<ProfileResponse> {
    return { user: userResponse(await this.users.findOwner(credential), this.links) };
  }

  @Get('my-games')
  @Scopes('profile:games')
  @ReplacedBy('/profile/games', 'List the games that the user can edit')
  @ApiOkResponse({ type: LegacyGamesResponse })
  async myGames(@CurrentCredential() { user_id }: Credential): Promise<LegacyGamesResponse | LongResponse> {
    const rows = await this.games.editableBy(user_id);
    return this.lists.response('games', rows, (row) => legacyGame(row, this.links));
  }

  @Get('my-owned-keys')
  @Scopes('profile:owned')
  @ReplacedBy('/profile/owned-keys', 'List the games that the user owns')
  @ApiOkResponse({ type: LegacyOwnedKeysResponse })
  async myOwnedKeys(
    @Params() request: OwnedKeysRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<LegacyOwnedKeysResponse> {
    const rows = await this.ownership.ownedKeys(user_id, request);
    const { page, per_page } = request;
    return { page, per_page, owned_keys: rows.map((row) => legacyOwnedKey(row, this.links)) };
  }

  @Get('game/:game_id')
  @Scopes('game:view')
  @ReplacedBy('/games/{game_id}', 'Get a game')
  @ApiOkResponse({ type: LegacyOneGameResponse })
  @Fails(404, 'invalid game')
  async game(
    @Params() { game_id }: GameRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<LegacyOneGameResponse> {
    return { game: legacyGameWithUser(await this.games.find(game_id, user_id), this.links) };
  }

  @Get('game/:game_id/download_keys')
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ReplacedBy('/games/{game_id}/download_keys', "Find a buyer's download key")
  @ApiOkResponse({ type: LegacyDownloadKeyResponse })
  @Fails(404, 'invalid game', 'invalid download key', 'no download key found')
  async downloadKey(
    @Params() request: DownloadKeyRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<LegacyDownloadKeyResponse> {
    const row = await this.download_keys.find(request, user_id);
    return { download_key: legacyDownloadKey(row, this.links) };
  }

  @Get('game/:game_id/purchases')
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ReplacedBy('/games/{game_id}/purchases', "List a buyer's purchases")
  @ApiOkResponse({ type: LegacyPurchasesResponse })
  @Fails(404, 'invalid game')
  async purchasesOf(
    @Params() request: PurchasesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<LegacyPurchasesResponse | LongResponse> {
    const rows = await this.purchases.find(request, user_id);
    return this.lists.response('purchases', rows, (row) => legacyPurchase(row, request.game_id));
  }

  @Get('game/:game_id/uploads')
  @Scopes('game:view:uploads')
  @ReplacedBy('/games/{game_id}/uploads', "List a game's files")
  @ApiOkResponse({ type: LegacyUploadsResponse })
  @Fails(404, 'invalid game', 'invalid download_key_id')
  async uploadsOf(
    @Params() request: UploadsRequest,
    @CurrentCredential() credential: Credential,
  ): Promise<LegacyUploadsResponse> {
    return { uploads: (await this.uploads.list(request, credential)).map(legacyUpload) };
  }

  @Get('upload/:upload_id/download')
  @DownloadCost()
  @Scopes('game:view:uploads')
  @ReplacedBy('/uploads/{upload_id}/download', 'Get the download URL of an upload')
  @ApiOkResponse({ type: LegacyDownloadResponse })
  @Fails(403, 'you must buy this game to download')
  @Fails(404, 'invalid upload', 'invalid download_key_id')
  async download(
    @Params() request: DownloadUploadRequest,
    @CurrentCredential() credential: Credential,
    @Req() req: Request,
  ): Promise<LegacyDownloadResponse> {
    return { url: await this.downloads.upload(request, credential, req) };
  }
}
