import { type DynamicModule, Module } from '@nestjs/common';
import { ServerModule } from '../platform/server/server.module';
import { GamesModule } from '../games/games.module';
import type { Settings } from '../platform/config/settings';
import { PurchasesModule } from '../purchases/purchases.module';
import { UploadsModule } from '../uploads/uploads.module';
import { UsersModule } from '../users/users.module';
import { WharfModule } from '../wharf/wharf.module';
import { LegacyLatestController } from './legacy-latest.controller';
import { LegacyController } from './legacy.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [
    ServerModule,
    RateLimitsModule,
    UsersModule,
    GamesModule,
    PurchasesModule,
    UploadsModule,
    WharfModule,
  ],
})
export class LegacyModule {
  static with({ LENIENT_CLIENTS }: Pick<Settings, 'LENIENT_CLIENTS'>): DynamicModule {
    return {
      module: LegacyModule,
      controllers: LENIENT_CLIENTS ? [LegacyController, LegacyLatestController] : [LegacyController],
    };
  }
}
