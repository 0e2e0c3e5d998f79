import { Controller, Get, Post, UseInterceptors } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../auth/access/access';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { StoreLinks } from '../platform/config/store-links';
import { ListStreams, type LongResponse } from '../platform/output/list-streams';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { IdempotencyKey } from '../idempotency/idempotency-key';
import { IdempotencyService, OncePerKey, type RetryKey } from '../idempotency/idempotency.service';
import { EditsCollection } from './edits-collection';
import { SuccessResponse } from '../platform/output/success-response';
import {
  collectionResponse,
  CollectionRequest,
  CollectionsResponse,
  CreateCollectionRequest,
  ListCollectionsRequest,
  OneCollectionResponse,
  UpdateCollectionRequest,
} from './collection.dto';
import { CollectionsService } from './collections.service';
import { LongHtmlInterceptor } from './long-html.interceptor';

@Controller()
@ApiTags('Collections')
export class CollectionsController {
  constructor(
    private readonly collections: CollectionsService,
    private readonly lists: ListStreams,
    private readonly links: StoreLinks,
    private readonly idempotency: IdempotencyService,
  ) {}

  @Get('profile/collections')
  @ApiOperation({
    summary: "List the user's collections",
    description: 'Collections that the user owns or administers, last updated first.',
  })
  @Scopes('profile:collections')
  @ApiOkResponse({ type: CollectionsResponse })
  async list(
    @Params() { game_id }: ListCollectionsRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<CollectionsResponse | LongResponse> {
    const rows = await this.collections.editableBy(user_id, game_id);
    return this.lists.response('collections', rows, (row) => collectionResponse(row, this.links));
  }

  @Get('collections/:collection_id')
  @ApiOperation({
    summary: 'Get a collection',
    description: 'Private collections are visible to their editors.',
  })
  @Scopes('collection:view')
  @ApiOkResponse({ type: OneCollectionResponse })
  @Fails(404, 'invalid collection')
  async one(
    @Params() { collection_id }: CollectionRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<OneCollectionResponse> {
    return { collection: await this.collections.one(collection_id, user_id) };
  }

  @Post('collections')
  @ApiOperation({
    summary: 'Create a collection',
    description: 'The collection belongs to the user of the credential.',
  })
  @Scopes('collection:edit')
  @UseInterceptors(LongHtmlInterceptor)
  @OncePerKey()
  @ApiOkResponse({ type: OneCollectionResponse })
  @Fails(404, 'invalid game')
  create(
    @Params() request: CreateCollectionRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<OneCollectionResponse> {
    return this.idempotency.once(key, request, (manager) =>
      this.collections.create(user_id, request, manager),
    );
  }

  @Post('collections/:collection_id')
  @ApiOperation({ summary: 'Update a collection', description: 'Omitted parameters are unchanged.' })
  @EditsCollection(OneCollectionResponse)
  @UseInterceptors(LongHtmlInterceptor)
  update(
    @Params() request: UpdateCollectionRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<OneCollectionResponse> {
    return this.idempotency.once(key, request, (manager) =>
      this.collections.update(user_id, request, manager),
    );
  }

  @Post('collections/:collection_id/delete')
  @ApiOperation({ summary: 'Delete a collection and everything in it' })
  @EditsCollection(SuccessResponse)
  delete(
    @Params() request: CollectionRequest,
    @CurrentCredential() { user_id }: Credential,
    @IdempotencyKey() key: RetryKey | undefined,
  ): Promise<SuccessResponse> {
    return this.idempotency.once(key, request, (manager) =>
      this.collections.delete(user_id, request.collection_id, manager),
    );
  }
}
