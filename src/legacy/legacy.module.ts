import { type DynamicModule, Module } from '@nestjs/common';
import { GamesModule } from '../games/games.module';
import type { Settings } from '../platform/config/settings';
import { PurchasesModule } from '../purchases/purchases.module';
import { UploadsModule } from '../uploads/uploads.module';
import { UsersModule } from '../users/users.module';
import { WharfModule } from '../wharf/wharf.module';
import { LegacyLatestController } from './legacy-latest.controller';
import { LegacyController } from './legacy.controller';
import { RateLimitsModule } from '../platform/rate-limits/rate-limits.module';

@Module({
  imports: [RateLimitsModule, UsersModule, GamesModule, PurchasesModule, UploadsModule, WharfModule],
})
export class LegacyModule {
  static with({ LENIENT_CLIENTS }: Pick<Settings, 'LENIENT_CLIENTS'>): DynamicModule {
    return {
      module: LegacyModule,
      controllers: LENIENT_CLIENTS ? [LegacyController, LegacyLatestController] : [LegacyController],
    };
  }
}
