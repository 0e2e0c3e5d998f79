import { Controller, Get, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access';
import { type Credential, CurrentCredential } from '../auth/credential';
import { StoreLinks } from '../platform/config/store-links';
import type { Packed } from '../platform/database/packed-row';
import { type LongList, LongLists } from '../platform/http/long-lists';
import { Fails } from '../platform/http/routes';
import { Params } from '../platform/http/params.decorator';
import { RetryKey } from '../auth/retry-key';
import { IdempotencyService, OncePerKey } from '../platform/idempotency/idempotency.service';
import {
  AddGameRequest,
  collectionGameAnswer,
  CollectionGamesResponse,
  CollectionGamesRequest,
  OneCollectionGameResponse,
  OrderRequest,
  RemovedResponse,
  RemoveGameRequest,
  UpdateCollectionGameRequest,
} from './collection-game.dto';
import { SuccessResponse } from './collection.dto';
import { CollectionGamesService } from './collection-games.service';

@Controller('collections/:collection_id')
@ApiTags('Collections')
export class CollectionGamesController {
  constructor(
    private readonly entries: CollectionGamesService,
    private readonly lists: LongLists,
    private readonly links: StoreLinks,
    private readonly idempotency: IdempotencyService,
  ) {}

  @Get('collection-games')
  @ApiOperation({
    summary: 'The games in a collection, in their order',
    description:
      'Games that the caller may not see are left out; positions are those in the whole collection.',
  })
  @Scopes('collection:view')
  @ApiOkResponse({ type: CollectionGamesResponse })
  @Fails(404, 'invalid collection')
  async page(
    @Params() request: CollectionGamesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<CollectionGamesResponse | LongList<Packed>> {
    const { collection_id, page, per_page } = request;
    const rows = await this.entries.page(user_id, request);
    return this.lists.answer(
      'collection_games',
      rows,
      (row) => collectionGameAnswer(collection_id, row, this.links),
      { page, per_page },
    );
  }

  @Post('add-game')
  @ApiOperation({
    summary: 'Put a game at the end of a collection',
    description: 'One that is in it already stays as and where it is.',
  })
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: OneCollectionGameResponse })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection', 'invalid game')
  add(
    @Params() request: AddGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameResponse> {
    return this.idempotency.once(key, request, this.entries.add(user_id, request));
  }

  @Post('remove-game')
  @ApiOperation({ summary: 'Take a game out of a collection' })
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: RemovedResponse })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection')
  remove(
    @Params() request: RemoveGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<RemovedResponse> {
    return this.idempotency.once(key, request, this.entries.remove(user_id, request));
  }

  @Post('collection-games/:game_id')
  @ApiOperation({ summary: 'Change the note on a game' })
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: OneCollectionGameResponse })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection', 'game is not in the collection')
  update(
    @Params() request: UpdateCollectionGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameResponse> {
    return this.idempotency.once(key, request, this.entries.update(user_id, request));
  }

  @Post('order')
  @ApiOperation({
    summary: 'Put the games in another order',
    description:
      'Those to remove go first. The listed games come first then, and the others follow as they were; ids that are not in the collection are ignored.',
  })
  @Scopes('collection:edit')
  @OncePerKey()
  @ApiOkResponse({ type: SuccessResponse })
  @Fails(403, "you can't edit this collection")
  @Fails(404, 'invalid collection')
  order(
    @Params() request: OrderRequest,
    @CurrentCredential() { user_id }: Credential,
    @RetryKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    return this.idempotency.once(key, request, this.entries.order(user_id, request));
  }
}
