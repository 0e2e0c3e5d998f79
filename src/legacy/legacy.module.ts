import { Module } from '@nestjs/common';
import { GamesModule } from '../games/games.module';
import { PurchasesModule } from '../purchases/purchases.module';
import { UsersModule } from '../users/users.module';
import { WharfModule } from '../wharf/wharf.module';
import { LegacyController } from './legacy.controller';

@Module({
  imports: [UsersModule, GamesModule, PurchasesModule, WharfModule],
  controllers: [LegacyController],
})
export class LegacyModule {}
