import { Controller, Post, Req } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { Params } from '../../platform/input/params.decorator';
import { SuccessResponse } from '../../platform/output/success-response';
import { Fails } from '../../platform/server/routes';
import { isFor } from '../../uploads/uploads.service';
import { invalidGame } from '../errors';
import {
  CreateGameRequest,
  EditedGameRequest,
  EditedGameResponse,
  UpdateGameRequest,
} from './game-edits.dto';
import { GameEditsService } from './game-edits.service';

@ApiTags('Games')
@Controller('games')
export class GameEditsController {
  constructor(private readonly games: GameEditsService) {}

  @Post()
  @ApiOperation({
    summary: 'Create a game',
    description:
      'The game belongs to the user of the credential, whose account must be that of a developer. An account can have at most 10,000 games.',
  })
  @Scopes('game:edit')
  @OncePerKey()
  @ApiOkResponse({ type: EditedGameResponse })
  @Fails(403, 'developer account required')
  create(
    @Params() request: CreateGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @Req() { id: request_id }: Request,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<EditedGameResponse> {
    return this.games.create(request, { request_id, user_id }, key);
  }

  @Post(':game_id')
  @ApiOperation({
    summary: 'Update a game',
    description: 'Omitted parameters are unchanged. Only for users who can edit the game.',
  })
  @Scopes('game:edit')
  @OncePerKey()
  @ApiOkResponse({ type: EditedGameResponse })
  @Fails(404, 'invalid game')
  update(
    @Params() request: UpdateGameRequest,
    @CurrentCredential() credential: Credential,
    @Req() { id: request_id }: Request,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<EditedGameResponse> {
    requireOwnGame(credential, request);
    return this.games.update(request, { request_id, user_id: credential.user_id }, key);
  }

  @Post(':game_id/delete')
  @ApiOperation({
    summary: 'Delete a game',
    description:
      'Deletes the game with its files and builds, and removes it from collections. Only for its owner. A game with purchases or download keys can’t be deleted.',
  })
  @Scopes('game:edit')
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(403, "you can't delete this game")
  @Fails(404, 'invalid game')
  delete(
    @Params() request: EditedGameRequest,
    @CurrentCredential() credential: Credential,
    @Req() { id: request_id }: Request,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    requireOwnGame(credential, request);
    return this.games.delete(request, { request_id, user_id: credential.user_id }, key);
  }
}

/** A game's JWT is valid for that game only. */
function requireOwnGame(credential: Credential, { game_id }: EditedGameRequest): void {
  if (!isFor(credential, game_id)) throw invalidGame();
}
