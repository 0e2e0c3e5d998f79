import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module';
import { User } from '../auth/accounts/user.entity';
import { SignInModule } from '../auth/sign-in/sign-in.module';
import { EventsModule } from '../events/events.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { TokensModule } from '../operator/tokens/tokens.module';
import { ExpiredRows } from '../platform/database/expired-rows';
import { AccountsService } from './accounts.service';
import { AccountLink } from './links/account-link.entity';
import { LINK_REQUESTED } from './links/link-events';
import { LinkRequest } from './links/link-request.entity';
import { LinkRequests } from './links/link-requests.service';
import { LinksController } from './links/links.controller';
import { EXPIRED_LINKS, LinksService } from './links/links.service';
import { OwnAccountService } from './own-account.service';
import { UsersController } from './users.controller';
import { UsersService } from './users.service';

@Module({
  imports: [
    AuthModule,
    SignInModule,
    IdempotencyModule,
    TokensModule,
    EventsModule.forFeature([LINK_REQUESTED]),
    TypeOrmModule.forFeature([User, AccountLink, LinkRequest]),
  ],
  controllers: [UsersController, LinksController],
  providers: [AccountsService, LinkRequests, LinksService, OwnAccountService, UsersService],
  exports: [AccountsService, LinkRequests, LinksService, OwnAccountService, UsersService],
})
export class UsersModule {
  constructor(expired: ExpiredRows) {
    expired.register('link_requests', 'id', EXPIRED_LINKS);
    expired.register('account_links', 'id', EXPIRED_LINKS);
  }
}
