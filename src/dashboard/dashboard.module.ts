import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module';
import { OperationsModule } from '../platform/operations/operations.module';
import { OauthModule } from '../auth/oauth/oauth.module';
import { SignInModule } from '../auth/sign-in/sign-in.module';
import { UsersModule } from '../users/users.module';
import { AccountController } from './account/account.controller';
import { ForgottenPasswordController } from './account/forgotten-password.controller';
import { LinkController } from './account/link.controller';
import { PushModule } from '../push/push.module';
import { UploadsModule } from '../uploads/uploads.module';
import { CollectionsModule } from '../collections/collections.module';
import { GameEditingModule } from '../games/editing/game-editing.module';
import { ParameterPipe } from '../platform/input/parameter.pipe';
import { PeopleModule } from '../operator/people/people.module';
import { TokensModule } from '../operator/tokens/tokens.module';
import { DataController } from './settings/data.controller';
import { PurchasesModule } from '../purchases/purchases.module';
import { ApiKeysController } from './settings/api-keys.controller';
import { ApplicationsController } from './settings/applications.controller';
import { AuthorizationController } from './consent/authorization.controller';
import { DeviceController } from './consent/device.controller';
import { GrantsController } from './settings/grants.controller';
import { GameBuildsController } from './games/builds.controller';
import { BuildsPage } from './games/builds.page';
import { GameKeysController } from './games/keys.controller';
import { GameController } from './games/game.controller';
import { FilesPage } from './games/files.page';
import { UploadForm } from './games/upload-form';
import { GameFilesController } from './games/files.controller';
import { GameFrame } from './games/game-frame';
import { GamePage } from './games/game.page';
import { GamesPage } from './games/games.page';
import { OverviewPage } from './games/overview.page';
import { SellerGamesController } from './games/games.controller';
import { LibraryController } from './library/library.controller';
import { LibraryPage } from './library/library.page';
import { RedemptionService } from './library/redemption.service';
import { DevelopersController } from './layout/developers.controller';
import { HomeController } from './sign-in/home.controller';
import { BuyersController } from './sales/buyers.controller';
import { SaleController } from './sales/sale.controller';
import { SalesPageController } from './sales/sales.controller';
import { FiguresController } from './sales/figures.controller';
import { OperatorReferenceController } from './reference/operator-reference.controller';
import { ReferencePageController } from './reference/reference-page.controller';
import { CollectionsPage } from './collections/collections.page';
import { PlayerCollectionsController } from './collections/player-collections.controller';
import { IdentitiesModule } from '../auth/identities/identities.module';
import { IdentitiesController } from './settings/identities.controller';
import { ProviderController } from './sign-in/provider.controller';
import { ConfirmationService } from './sign-in/confirmation.service';
import { ProviderSignIn } from './sign-in/provider-sign-in';
import { SetupController } from './sign-in/setup.controller';
import { SignInController } from './sign-in/sign-in.controller';
import { Assets } from './layout/assets';
import { AssetsController } from './layout/assets.controller';
import { Covers } from './layout/covers';
import { Demo } from './layout/demo';
import { Layout } from './layout/layout';
import { NoSuchPageFilter } from './layout/no-such-page.filter';
import { ReturnPath } from './layout/return-path';
import { Visitors } from './layout/visitors';
import { WharfModule } from '../wharf/wharf.module';
import { WebhooksModule } from '../operator/webhooks/webhooks.module';
import { WebhooksController } from './webhooks/webhooks.controller';
import { RateLimitsModule } from '../platform/limits/rate-limits.module';

@Module({
  imports: [
    AuthModule,
    OperationsModule,
    RateLimitsModule,
    CollectionsModule,
    GameEditingModule,
    IdentitiesModule,
    OauthModule,
    PeopleModule,
    TokensModule,
    PurchasesModule,
    SignInModule,
    PushModule,
    UploadsModule,
    UsersModule,
    WebhooksModule,
    WharfModule,
  ],
  controllers: [
    HomeController,
    DevelopersController,
    AssetsController,
    SignInController,
    ProviderController,
    SetupController,
    IdentitiesController,
    LibraryController,
    SellerGamesController,
    GameController,
    GameFilesController,
    GameKeysController,
    GameBuildsController,
    SalesPageController,
    FiguresController,
    SaleController,
    BuyersController,
    WebhooksController,
    ApiKeysController,
    ReferencePageController,
    OperatorReferenceController,
    ApplicationsController,
    DataController,
    AccountController,
    LinkController,
    ForgottenPasswordController,
    GrantsController,
    PlayerCollectionsController,
    DeviceController,
    AuthorizationController,
  ],
  providers: [
    Assets,
    ConfirmationService,
    Covers,
    Demo,
    FilesPage,
    UploadForm,
    GameFrame,
    GamePage,
    OverviewPage,
    GamesPage,
    BuildsPage,
    CollectionsPage,
    Layout,
    LibraryPage,
    NoSuchPageFilter,
    ParameterPipe,
    ProviderSignIn,
    RedemptionService,
    ReturnPath,
    Visitors,
  ],
  exports: [Covers, Layout, NoSuchPageFilter, RedemptionService, ReturnPath, Visitors],
})
export class DashboardModule {}
