import { Controller, Get, Post, UseInterceptors } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { StoreLinks } from '../platform/config/store-links';
import { ListStreams, type LongResponse } from '../platform/output/list-streams';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { IdempotencyKey } from '../idempotency/idempotency-key';
import { IdempotencyService, type RetryKey } from '../idempotency/idempotency.service';
import {
  AddGameRequest,
  collectionGameResponse,
  CollectionGamesResponse,
  CollectionGamesRequest,
  OneCollectionGameResponse,
  OrderRequest,
  RemovedResponse,
  RemoveGameRequest,
  UpdateCollectionGameRequest,
} from './collection-game.dto';
import { EditsCollection } from './edits-collection';
import { SuccessResponse } from '../platform/output/success-response';
import { CollectionGamesListService } from './collection-games-list.service';
import { CollectionGamesService } from './collection-games.service';
import { LongHtmlInterceptor } from './long-html.interceptor';

@Controller('collections/:collection_id')
@ApiTags('Collections')
export class CollectionGamesController {
  constructor(
    private readonly list: CollectionGamesListService,
    private readonly entries: CollectionGamesService,
    private readonly lists: ListStreams,
    private readonly links: StoreLinks,
    private readonly idempotency: IdempotencyService,
  ) {}

  @Get('collection-games')
  @ApiOperation({
    summary: "List a collection's games",
    description:
      'Lists the entries in the order of the collection. Games that the user cannot see are omitted; positions refer to the whole collection.',
  })
  @Scopes('collection:view')
  @ApiOkResponse({ type: CollectionGamesResponse })
  @Fails(404, 'invalid collection')
  async page(
    @Params() request: CollectionGamesRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<CollectionGamesResponse | LongResponse> {
    const { collection_id, page, per_page } = request;
    const rows = await this.list.page(user_id, request);
    return this.lists.response(
      'collection_games',
      rows,
      (row) => collectionGameResponse(collection_id, row, this.links),
      { page, per_page },
    );
  }

  @Post('add-game')
  @ApiOperation({
    summary: 'Add a game to a collection',
    description: 'Adds the game at the end. A game that is already in the collection is unchanged.',
  })
  @EditsCollection(OneCollectionGameResponse, 'invalid game')
  @UseInterceptors(LongHtmlInterceptor)
  add(
    @Params() request: AddGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameResponse> {
    return this.idempotency.once(key, request, (manager) => this.entries.add(user_id, request, manager));
  }

  @Post('remove-game')
  @ApiOperation({ summary: 'Remove a game from a collection' })
  @EditsCollection(RemovedResponse)
  remove(
    @Params() request: RemoveGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<RemovedResponse> {
    return this.idempotency.once(key, request, (manager) => this.entries.remove(user_id, request, manager));
  }

  @Post('collection-games/:game_id')
  @ApiOperation({ summary: "Update a game's blurb" })
  @EditsCollection(OneCollectionGameResponse, 'game is not in the collection')
  @UseInterceptors(LongHtmlInterceptor)
  update(
    @Params() request: UpdateCollectionGameRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<OneCollectionGameResponse> {
    return this.idempotency.once(key, request, (manager) => this.entries.update(user_id, request, manager));
  }

  @Post('order')
  @ApiOperation({
    summary: "Reorder a collection's games",
    description:
      'Removes the games to remove, then puts the listed games first. The other games follow in their previous order. IDs that are not in the collection are ignored.',
  })
  @EditsCollection(SuccessResponse)
  order(
    @Params() request: OrderRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    return this.idempotency.once(key, request, (manager) => this.entries.order(user_id, request, manager));
  }
}
