import { Controller, Post, Req } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { Params } from '../../platform/input/params.decorator';
import { Fails } from '../../platform/server/routes';
import { SuccessResponse } from '../../platform/output/success-response';
import { OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { CreatedKeysService } from './created-keys.service';
import {
  CreatedDownloadKeysResponse,
  CreateDownloadKeysRequest,
  RevokeDownloadKeyRequest,
} from './download-key.dto';

@ApiTags('Purchases')
@Controller('games/:game_id/download_keys')
export class CreatedKeysController {
  constructor(private readonly keys: CreatedKeysService) {}

  @Post()
  @ApiOperation({
    summary: 'Create download keys',
    description:
      'Creates keys that belong to no account, to give away or to sell elsewhere. The first player who redeems one gets the game. A game can have at most 10,000 unclaimed keys.',
  })
  @Scopes('game:edit:keys')
  @OncePerKey()
  @ApiOkResponse({ type: CreatedDownloadKeysResponse })
  @Fails(404, 'invalid game')
  create(
    @Params() request: CreateDownloadKeysRequest,
    @CurrentCredential() { user_id }: Credential,
    @Req() { id: request_id }: Request,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<CreatedDownloadKeysResponse> {
    return this.keys.create(request, { request_id, user_id }, key);
  }

  @Post(':download_key_id/revoke')
  @ApiOperation({
    summary: 'Revoke a download key',
    description: 'The player who redeemed it loses the game. A purchased key is revoked by a refund instead.',
  })
  @Scopes('game:edit:keys')
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(403, "you can't revoke a purchased download key")
  @Fails(404, 'invalid game', 'invalid download key')
  revoke(
    @Params() request: RevokeDownloadKeyRequest,
    @CurrentCredential() { user_id }: Credential,
    @Req() { id: request_id }: Request,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    return this.keys.revoke(request, { request_id, user_id }, key);
  }
}
