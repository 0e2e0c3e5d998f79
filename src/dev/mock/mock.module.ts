import { type DynamicModule, Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import type { Logger } from 'pino';
import { AppModule } from '../../app.module';
import { AuthModule } from '../../auth/auth.module';
import type { Settings } from '../../platform/config/settings';
import { PurchasesModule } from '../../purchases/purchases.module';
import { ApiPaths } from './api-paths';
import { DownloadKeyInterceptor } from './download-key.interceptor';
import { Faults } from './faults.service';
import { MockController } from './mock.controller';
import { MockTraffic } from './mock-traffic';
import { LiveQuirks } from './quirks.service';
import { RecordedRequests } from './recorded-requests.service';
import { ResetLock } from './reset-lock';
import { ResetService } from './reset.service';

/** The service with the routes under `/mock`. Only the command `gamewharf mock` loads it. */
@Module({
  imports: [AuthModule, PurchasesModule],
  controllers: [MockController],
  providers: [
    ApiPaths,
    Faults,
    LiveQuirks,
    MockTraffic,
    RecordedRequests,
    ResetLock,
    ResetService,
    { provide: APP_INTERCEPTOR, useClass: DownloadKeyInterceptor },
  ],
})
export class MockModule {
  static with(settings: Settings, logger: Logger): DynamicModule {
    return { module: MockModule, imports: [AppModule.with(settings, logger)] };
  }
}
