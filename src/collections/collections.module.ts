import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { CollectionGamesController } from './collection-games.controller';
import { CollectionGamesService } from './collection-games.service';
import { CollectionsController } from './collections.controller';
import { CollectionsService } from './collections.service';
import { htmlThread } from './html-thread';
import { IdempotencyService } from './idempotency.service';
import { ResanitiseService } from './resanitise.service';

@Module({
  controllers: [CollectionsController, CollectionGamesController],
  providers: [CollectionsService, CollectionGamesService, IdempotencyService, ResanitiseService],
})
export class CollectionsModule implements OnApplicationShutdown {
  onApplicationShutdown(): void {
    htmlThread.end();
  }
}
