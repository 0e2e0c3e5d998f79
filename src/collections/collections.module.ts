import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdempotencyModule } from '../platform/idempotency/idempotency.module';
import { Collection } from './collection.entity';
import { CollectionGame } from './collection-game.entity';
import { CollectionGamesController } from './collection-games.controller';
import { CollectionGamesService } from './collection-games.service';
import { CollectionsController } from './collections.controller';
import { CollectionsService } from './collections.service';
import { htmlThread } from './html-thread';
import { ResanitiseService } from './resanitise.service';

@Module({
  imports: [IdempotencyModule, TypeOrmModule.forFeature([Collection, CollectionGame])],
  controllers: [CollectionsController, CollectionGamesController],
  providers: [CollectionsService, CollectionGamesService, ResanitiseService],
})
export class CollectionsModule implements OnApplicationShutdown {
  onApplicationShutdown(): void {
    htmlThread.end();
  }
}
