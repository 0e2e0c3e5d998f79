import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access';
import { type Credential, CurrentCredential } from '../auth/credential';
import { Fails } from '../http/openapi';
import { Parameters } from '../http/parameters';
import { Post } from '../http/post';
import {
  AddGameRequest,
  CollectionGamesAnswer,
  CollectionGamesRequest,
  OneCollectionGameAnswer,
  OrderRequest,
  RemovedAnswer,
  RemoveGameRequest,
  UpdateCollectionGameRequest,
} from './collection-game.dto';
import { SuccessAnswer } from './collection.dto';
import { CollectionGamesService } from './collection-games.service';
import { IdempotencyService, OncePerKey, RetryKey } from './idempotency.service';

@Controller('collections/:collection_id')
@ApiTags('collections')
export class CollectionGamesController {
  constructor(
    private readonly entries: CollectionGamesService,
    private readonly idempotency: IdempotencyService,
  ) {}

  @Get('collection-games')
  @Scopes('collection:view')
  @ApiOkResponse({ type: CollectionGamesAnswer })
  @Fails(404, 'invalid collection')
  page(
    @Parameters() request: CollectionGamesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<CollectionGamesAnswer> {
    return this.entries.page(user_id, request);
  }

  @Post('add-game')
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: OneCollectionGameAnswer })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection', 'invalid game')
  add(
    @Parameters() request: AddGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameAnswer> {
    return this.idempotency.once(key, request, async (db) => ({
      collection_game: await this.entries.add(db, user_id, request),
    }));
  }

  @Post('remove-game')
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: RemovedAnswer })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection')
  remove(
    @Parameters() request: RemoveGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<RemovedAnswer> {
    return this.idempotency.once(key, request, async (db) => ({
      success: true,
      removed: await this.entries.remove(db, user_id, request),
    }));
  }

  @Post('collection-games/:game_id')
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: OneCollectionGameAnswer })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection', 'game is not in the collection')
  update(
    @Parameters() request: UpdateCollectionGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameAnswer> {
    return this.idempotency.once(key, request, async (db) => ({
      collection_game: await this.entries.update(db, user_id, request),
    }));
  }

  @Post('order')
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: SuccessAnswer })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection')
  order(
    @Parameters() request: OrderRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<SuccessAnswer> {
    return this.idempotency.once(key, request, async (db) => {
      await this.entries.order(db, user_id, request);
      return { success: true };
    });
  }
}
