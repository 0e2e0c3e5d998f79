import { Module } from '@nestjs/common';
import { ApiKeysController } from './api-keys.controller';
import { AttemptsService } from './attempts.service';
import { Audit } from './audit';
import { HomeController } from './home.controller';
import { KeysService } from './keys.service';
import { PasswordQueue } from './password-queue';
import { SessionsService } from './sessions.service';
import { SignInController } from './sign-in.controller';
import { SignInService } from './sign-in.service';
import { Assets } from './web/assets';
import { AssetsController } from './web/assets.controller';
import { Layout } from './web/layout';
import { PageGuard } from './web/page.guard';
import { Visitors } from './web/visitors';

@Module({
  controllers: [HomeController, AssetsController, SignInController, ApiKeysController],
  providers: [
    Assets,
    AttemptsService,
    Audit,
    KeysService,
    Layout,
    PasswordQueue,
    SessionsService,
    SignInService,
    Visitors,
    PageGuard,
  ],
  exports: [PageGuard],
})
export class AccountsModule {}
