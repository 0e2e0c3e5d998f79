import { Module } from '@nestjs/common';
import { ApiKeysController } from './api-keys.controller';
import { ApplicationsController } from './applications.controller';
import { ApplicationsService } from './applications.service';
import { AttemptsService } from './attempts.service';
import { AuthorizationController } from './authorization.controller';
import { AuthorizationRequests } from './authorization-requests.service';
import { DeviceController } from './device.controller';
import { DeviceRequestsService } from './device-requests.service';
import { ExpiredRowsService } from './expired-rows.service';
import { GrantsController } from './grants.controller';
import { GrantsService } from './grants.service';
import { HomeController } from './home.controller';
import { KeysService } from './keys.service';
import { OauthCodesService } from './oauth-codes.service';
import { OauthController } from './oauth.controller';
import { OauthTokensService } from './oauth-tokens.service';
import { PasswordQueue } from './password-queue';
import { ProfileCollectionsController } from './profile-collections.controller';
import { ProfileCollectionsService } from './profile-collections.service';
import { SessionsService } from './sessions.service';
import { SignInController } from './sign-in.controller';
import { SignInService } from './sign-in.service';
import { Assets } from './web/assets';
import { AssetsController } from './web/assets.controller';
import { Layout } from './web/layout';
import { PageGuard } from './web/page.guard';
import { Visitors } from './web/visitors';

@Module({
  controllers: [
    HomeController,
    AssetsController,
    SignInController,
    ApiKeysController,
    ApplicationsController,
    GrantsController,
    ProfileCollectionsController,
    DeviceController,
    AuthorizationController,
    OauthController,
  ],
  providers: [
    ApplicationsService,
    Assets,
    AttemptsService,
    AuthorizationRequests,
    DeviceRequestsService,
    ExpiredRowsService,
    GrantsService,
    KeysService,
    Layout,
    OauthCodesService,
    OauthTokensService,
    PageGuard,
    PasswordQueue,
    ProfileCollectionsService,
    SessionsService,
    SignInService,
    Visitors,
  ],
  exports: [PageGuard],
})
export class AccountsModule {}
