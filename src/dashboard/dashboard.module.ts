import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKey } from '../auth/api-key.entity';
import { Collection } from '../collections/collection.entity';
import { ProfileCollection } from '../collections/profile-collection.entity';
import { PurchasesModule } from '../purchases/purchases.module';
import { User } from '../users/user.entity';
import { ApiKeysController } from './settings/api-keys.controller';
import { ApplicationsController } from './settings/applications.controller';
import { ApplicationsService } from '../auth/oauth/applications.service';
import { AttemptsService } from '../auth/sign-in/attempts.service';
import { AuthorizationController } from './consent/authorization.controller';
import { AuthorizationRequests } from '../auth/oauth/authorization-requests.service';
import { DeviceController } from './consent/device.controller';
import { DeviceRequestsService } from '../auth/oauth/device-requests.service';
import { ExpiredRowsService } from './expired-rows.service';
import { GrantsController } from './settings/grants.controller';
import { GrantsService } from '../auth/oauth/grants.service';
import { LibraryController } from './library/library.controller';
import { LibraryPage } from './library/library.page';
import { HomeController } from './layout/home.controller';
import { KeysService } from './settings/keys.service';
import { OauthApplication } from '../auth/oauth/oauth-application.entity';
import { OauthCode } from '../auth/oauth/oauth-code.entity';
import { OauthCodesService } from '../auth/oauth/oauth-codes.service';
import { OauthController } from '../auth/oauth/oauth.controller';
import { OauthDeviceRequest } from '../auth/oauth/oauth-device-request.entity';
import { OauthGrant } from '../auth/oauth/oauth-grant.entity';
import { OauthRefreshToken } from '../auth/oauth/oauth-refresh-token.entity';
import { OauthTokensService } from '../auth/oauth/oauth-tokens.service';
import { PasswordQueue } from '../auth/sign-in/password-queue';
import { BuyersController } from './sales/buyers.controller';
import { SalesController } from './sales/sales.controller';
import { SalesService } from './sales/sales.service';
import { ReferencePageController } from './reference/reference-page.controller';
import { ProfileCollectionsController } from './settings/profile-collections.controller';
import { ProfileCollectionsService } from './settings/profile-collections.service';
import { Session } from '../auth/sign-in/session.entity';
import { SessionsService } from '../auth/sign-in/sessions.service';
import { SignInController } from './sign-in/sign-in.controller';
import { SignInService } from './sign-in/sign-in.service';
import { Assets } from './layout/assets';
import { AssetsController } from './layout/assets.controller';
import { Demo } from './layout/demo';
import { Layout } from './layout/layout';
import { NoSuchPageFilter } from './layout/no-such-page.filter';
import { Visitors } from './layout/visitors';

@Module({
  imports: [
    PurchasesModule,
    TypeOrmModule.forFeature([
      ApiKey,
      Collection,
      OauthApplication,
      OauthCode,
      OauthDeviceRequest,
      OauthGrant,
      OauthRefreshToken,
      ProfileCollection,
      Session,
      User,
    ]),
  ],
  controllers: [
    HomeController,
    AssetsController,
    SignInController,
    LibraryController,
    SalesController,
    BuyersController,
    ApiKeysController,
    ReferencePageController,
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
    Demo,
    DeviceRequestsService,
    ExpiredRowsService,
    GrantsService,
    KeysService,
    Layout,
    LibraryPage,
    NoSuchPageFilter,
    OauthCodesService,
    OauthTokensService,
    PasswordQueue,
    ProfileCollectionsService,
    SalesService,
    SessionsService,
    SignInService,
    Visitors,
  ],
  exports: [AttemptsService, Layout, NoSuchPageFilter, Visitors, SignInService],
})
export class AccountsModule {}
