import { type DynamicModule, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import type { Logger } from 'pino';
import { DashboardModule } from './dashboard/dashboard.module';
import { SignUpModule } from './dashboard/account/sign-up.module';
import { KeyPagesModule } from './dashboard/download/key-pages.module';
import { NoSuchPageFilter } from './dashboard/layout/no-such-page.filter';
import { AuthModule } from './auth/auth.module';
import { BearerGuard } from './auth/guards/bearer.guard';
import { RateLimitGuard } from './auth/guards/rate-limit.guard';
import { ScopesGuard } from './auth/guards/scopes.guard';
import { BundlesModule } from './bundles/bundles.module';
import { CollectionsModule } from './collections/collections.module';
import { SettingsModule, LOGGER } from './platform/config/settings.module';
import { settingsOfThisProcess } from './process-settings';
import { Settings } from './platform/config/settings';
import { createLogger } from './platform/observability/logger';
import { CredentialsModule } from './credentials/credentials.module';
import { Database } from './platform/database/database';
import { DatabaseModule } from './platform/database/database.module';
import { BodyGuard } from './platform/input/body.guard';
import { ErrorFilter } from './platform/output/error.filter';
import { ServerModule } from './platform/server/server.module';
import { ParameterPipe } from './platform/input/parameter.pipe';
import { GameEditingModule } from './games/editing/game-editing.module';
import { ImportModule } from './operator/import/import.module';
import { LegacyModule } from './legacy/legacy.module';
import { OperationsModule } from './platform/operations/operations.module';
import { LookupLimitGuard } from './platform/limits/lookup-limit.guard';
import { RateLimitsModule } from './platform/limits/rate-limits.module';
import { PeopleModule } from './operator/people/people.module';
import { OperatorGuard } from './operator/tokens/operator.guard';
import { TokensModule } from './operator/tokens/tokens.module';
import { ProfileModule } from './profile/profile.module';
import { PushModule } from './push/push.module';
import { PurchasesModule } from './purchases/purchases.module';
import { UploadsModule } from './uploads/uploads.module';
import { WharfModule } from './wharf/wharf.module';

@Module({
  // Express tries the routes in this order, so the most requested ones are first.
  imports: [
    DatabaseModule,
    ServerModule,
    AuthModule,
    CredentialsModule,
    ProfileModule,
    CollectionsModule,
    PurchasesModule,
    WharfModule,
    UploadsModule,
    PushModule,
    GameEditingModule,
    BundlesModule,
    DashboardModule,
    PeopleModule,
    TokensModule,
    ImportModule,
    OperationsModule,
    RateLimitsModule,
  ],
  providers: [
    { provide: APP_GUARD, useClass: OperatorGuard },
    { provide: APP_GUARD, useClass: BearerGuard },
    { provide: APP_GUARD, useClass: RateLimitGuard },
    { provide: APP_GUARD, useClass: ScopesGuard },
    { provide: APP_GUARD, useClass: LookupLimitGuard },
    { provide: APP_GUARD, useClass: BodyGuard },
    { provide: APP_PIPE, useClass: ParameterPipe },
    { provide: APP_FILTER, useClass: ErrorFilter },
    // Filters are tried from last to first.
    { provide: APP_FILTER, useExisting: NoSuchPageFilter },
  ],
})
class ServiceModule {}

/** What is decorated with `@Interval` runs in serving processes only. */
const NO_SCHEDULES = ScheduleModule.forRoot({ intervals: false, timeouts: false, cronJobs: false });

/**
 * The service with the settings of this process, for Nest's `createApplicationContext(AppModule)` and
 * `repl(AppModule)`.
 */
@Module({
  imports: [
    ServiceModule,
    NO_SCHEDULES,
    SettingsModule.providing(
      { provide: Settings, useFactory: settingsOfThisProcess },
      {
        provide: LOGGER,
        inject: [Settings],
        useFactory: ({ LOG_LEVEL }: Settings) => createLogger(LOG_LEVEL),
      },
    ),
  ],
})
export class AppModule implements OnApplicationBootstrap {
  constructor(private readonly database: Database) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.database.connect();
  }

  /** The service with other settings. Its database is connected by the caller, once it listens. */
  static with(settings: Settings, logger: Logger): DynamicModule {
    return serviceWith(settings, logger, ScheduleModule.forRoot());
  }

  static forCommand(settings: Settings, logger: Logger): DynamicModule {
    return serviceWith(settings, logger, NO_SCHEDULES);
  }
}

const serviceWith = (settings: Settings, logger: Logger, schedules: DynamicModule): DynamicModule => ({
  module: ServiceModule,
  imports: [
    schedules,
    SettingsModule.with(settings, logger),
    LegacyModule.with(settings),
    KeyPagesModule.with(settings),
    SignUpModule.with(settings),
  ],
});
