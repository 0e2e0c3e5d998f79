import { type DynamicModule, Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module';
import { SignInModule } from '../../auth/sign-in/sign-in.module';
import { Settings } from '../../platform/config/settings';
import { PurchasesModule } from '../../purchases/purchases.module';
import { UploadsModule } from '../../uploads/uploads.module';
import { DashboardModule } from '../dashboard.module';
import { KeyPageController } from './key-page.controller';
import { KeyPageView } from './key-page.page';

@Module({
  imports: [AuthModule, DashboardModule, PurchasesModule, SignInModule, UploadsModule],
  controllers: [KeyPageController],
  providers: [KeyPageView],
})
class KeyPagesEnabled {}

/** With KEY_PAGES=off, the routes don't exist. */
@Module({})
export class KeyPagesModule {
  static with({ KEY_PAGES }: Settings): DynamicModule {
    return { module: KeyPagesModule, imports: KEY_PAGES === 'off' ? [] : [KeyPagesEnabled] };
  }
}
