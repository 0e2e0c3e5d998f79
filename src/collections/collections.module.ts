import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ServerModule } from '../platform/server/server.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { Collection } from './collection.entity';
import { CollectionGame } from './collection-game.entity';
import { CollectionGamesController } from './collection-games.controller';
import { CollectionGamesListService } from './collection-games-list.service';
import { CollectionGamesService } from './collection-games.service';
import { CollectionsController } from './collections.controller';
import { CollectionsService } from './collections.service';
import { HtmlThread, htmlThread } from './html-thread';
import { ProfileCollection } from './profile-collection.entity';
import { ProfileCollectionsService } from './profile-collections.service';
import { ResanitizeService } from './resanitize.service';

@Module({
  imports: [
    ServerModule,
    IdempotencyModule,
    TypeOrmModule.forFeature([Collection, CollectionGame, ProfileCollection]),
  ],
  controllers: [CollectionsController, CollectionGamesController],
  providers: [
    CollectionsService,
    CollectionGamesListService,
    CollectionGamesService,
    ProfileCollectionsService,
    ResanitizeService,
    // The thread is a provider, so that it ends with the application.
    { provide: HtmlThread, useValue: htmlThread },
  ],
  exports: [
    CollectionsService,
    CollectionGamesListService,
    CollectionGamesService,
    ProfileCollectionsService,
  ],
})
export class CollectionsModule {}
