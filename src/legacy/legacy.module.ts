import { Module } from '@nestjs/common';
import { GamesModule } from '../games/games.module';
import { PurchasesModule } from '../purchases/purchases.module';
import { UsersModule } from '../users/users.module';
import { LegacyController } from './legacy.controller';

@Module({ imports: [UsersModule, GamesModule, PurchasesModule], controllers: [LegacyController] })
export class LegacyModule {}
