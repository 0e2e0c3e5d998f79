import { Controller, Get, Post, Req } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Audit } from '../audit/audit';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { insufficientScope } from '../auth/access/errors';
import { IdempotencyKey } from '../idempotency/idempotency-key';
import { IdempotencyService, OncePerKey, type RetryKey } from '../idempotency/idempotency.service';
import { StoreLinks } from '../platform/config/store-links';
import { Params } from '../platform/input/params.decorator';
import { Fails } from '../platform/server/routes';
import { ownedKeyResponse } from '../purchases/library/owned-key.dto';
import {
  bundleGameResponse,
  BundleGamesRequest,
  BundleGamesResponse,
  bundleKeyResponse,
  ClaimedKeyResponse,
  ClaimGameRequest,
  OwnedBundlesResponse,
} from './bundle.dto';
import { BundlesService } from './bundles.service';
import { CLAIM_SCOPE } from '../auth/access/scopes';

@ApiTags('Bundles')
@Controller()
export class BundlesController {
  constructor(
    private readonly bundles: BundlesService,
    private readonly idempotency: IdempotencyService,
    private readonly audit: Audit,
    private readonly links: StoreLinks,
  ) {}

  @Get('profile/owned-bundles')
  @ApiOperation({
    summary: 'List the bundles that the user owns',
    description:
      'The newest purchase of each bundle, at most 100. A user who owns a bundle owns its games. The download key of a game is created when the user claims it.',
  })
  @Scopes('profile:owned')
  @ApiOkResponse({ type: OwnedBundlesResponse })
  async owned(@CurrentCredential() { user_id }: Credential): Promise<OwnedBundlesResponse> {
    const rows = await this.bundles.owned(user_id);
    return { bundle_keys: rows.map((row) => bundleKeyResponse(row, this.links)) };
  }

  @Get('bundles/:bundle_id/bundle-games')
  @ApiOperation({
    summary: "List a bundle's games",
    description:
      'Lists the games in the order of the bundle, including games that are private or not published. The page after the last one is empty.',
  })
  @Scopes('profile:owned')
  @ApiOkResponse({ type: BundleGamesResponse })
  @Fails(404, 'invalid bundle')
  async games(
    @Params() request: BundleGamesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<BundleGamesResponse> {
    const { bundle_id, page, per_page } = request;
    const rows = await this.bundles.games(user_id, request);
    return {
      page,
      per_page,
      bundle_games: rows.map((row) => bundleGameResponse(bundle_id, row, this.links)),
    };
  }

  @Post('bundles/:bundle_id/claim-game')
  @ApiOperation({
    summary: 'Claim a game of a bundle',
    description:
      "Returns the user's download key for the game, and creates it if there is none. A game's JWT can't claim games.",
  })
  @Scopes(CLAIM_SCOPE)
  @OncePerKey()
  @ApiOkResponse({ type: ClaimedKeyResponse })
  @Fails(404, 'invalid bundle', 'invalid game')
  async claim(
    @Params() request: ClaimGameRequest,
    @CurrentCredential() credential: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
    @Req() { id: request_id }: Request,
  ): Promise<ClaimedKeyResponse> {
    // A JWT's scopes may include the one for claims, if the store lets games request all of `profile:owned`.
    if (credential.type === 'jwt') throw insufficientScope(credential, CLAIM_SCOPE);
    const { user_id, api_key_id, client_id } = credential;
    let download_key_id: number | undefined;
    const response = await this.idempotency.once(key, request, async (manager) => {
      const { key: row, isNew } = await this.bundles.claim(user_id, request, manager);
      if (isNew) download_key_id = row.key_id;
      return { download_key: ownedKeyResponse(row, this.links) };
    });
    if (download_key_id !== undefined)
      this.audit.record({
        event: 'download_key.claimed',
        request_id,
        user_id,
        api_key_id,
        client_id,
        download_key_id,
      });
    return response;
  }
}
