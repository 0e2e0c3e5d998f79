import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth.module';
import { ExpiredRows } from '../../platform/database/expired-rows';
import { ApplicationsService } from './applications.service';
import { AuthorizationRequests } from './authorization-requests.service';
import { DeviceRequestsService } from './device-requests.service';
import { GrantsService } from './grants.service';
import { OauthApplication } from '../accounts/oauth-application.entity';
import { OauthCode } from './oauth-code.entity';
import { OauthController } from './oauth.controller';
import { OauthDeviceRequest } from './oauth-device-request.entity';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { OauthRefreshToken } from './oauth-refresh-token.entity';
import { OauthCodesService } from './oauth-codes.service';
import { OauthTokensService } from './oauth-tokens.service';

const SERVICES = [
  ApplicationsService,
  AuthorizationRequests,
  DeviceRequestsService,
  GrantsService,
  OauthCodesService,
  OauthTokensService,
];

@Module({
  imports: [
    AuthModule,
    TypeOrmModule.forFeature([
      OauthApplication,
      OauthCode,
      OauthDeviceRequest,
      OauthGrant,
      OauthRefreshToken,
    ]),
  ],
  controllers: [OauthController],
  providers: SERVICES,
  exports: SERVICES,
})
export class OauthModule {
  constructor(expired: ExpiredRows) {
    // Codes are retained for another day, to distinguish a replay from an unknown code.
    expired.register('oauth_codes', 'code_hash', `expires_at < now() - interval '1 day'`);
    // A device that was offline can still be told that its code has expired.
    expired.register('oauth_device_requests', 'device_code_hash', `expires_at < now() - interval '1 hour'`);
    expired.register('oauth_refresh_tokens', 'token_hash', 'expires_at < now()');
  }
}
