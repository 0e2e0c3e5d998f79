import { applyDecorators, Controller, Get, Header, Req, UseFilters, UseGuards, Post } from '@nestjs/common';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiResponse,
  ApiTags,
  getSchemaPath,
} from '@nestjs/swagger';
import { Throttle } from '@nestjs/throttler';
import type { Request } from 'express';
import { Public } from '../access/access';
import { SCOPES } from '../access/scopes';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import { Params } from '../../platform/input/params.decorator';
import { ApplicationsService } from './applications.service';
import { CHALLENGE } from './authorization-requests.service';
import { BasicClientGuard } from './basic-client.guard';
import { DeviceRequestsService, LIFETIME_SECONDS } from './device-requests.service';
import {
  DeviceAuthorizationResponse,
  DeviceAuthorizationRequest,
  GRANT_TYPES,
  DEVICE_GRANT,
  OauthErrors,
  PollResponse,
  PollRequest,
  RevocationResponse,
  RevocationRequest,
  ServerMetadata,
  TokenRequest,
  TokensResponse,
} from './oauth.dto';
import type { OauthApplication } from '../accounts/oauth-application.entity';
import { OauthErrorFilter } from './oauth-error.filter';
import {
  invalidBasicClient,
  invalidClient,
  invalidRequest,
  invalidScope,
  type OauthErrorCode,
  OauthError,
} from './oauth-errors';
import { listOfScopes, problemOfScopes } from './oauth-scopes';
import { OauthTokensService } from './oauth-tokens.service';

/** The errors by status; the first of each is the example. */
const ERRORS_OF_STATUS: Record<number, [OauthErrorCode, ...OauthErrorCode[]]> = {
  400: ['invalid_grant', 'invalid_request', 'invalid_client', 'invalid_scope', 'unsupported_grant_type'],
  401: ['invalid_client'],
  413: ['invalid_request'],
  415: ['invalid_request'],
  429: ['slow_down'],
  500: ['server_error'],
  503: ['temporarily_unavailable'],
};

const OauthFails = ([status, errors]: [string, OauthErrorCode[]]) =>
  ApiResponse({
    status: Number(status),
    description: errors.join(', '),
    content: {
      'application/json': {
        schema: { $ref: getSchemaPath(OauthErrors) },
        example: { errors: [errors[0]], error: errors[0], error_description: 'what is wrong' },
      },
    },
  });

/** The client ID is a parameter or the user of HTTP Basic; errors have the format of RFC 6749. */
const ForClients = (summary: string) =>
  applyDecorators(
    Public(),
    UseGuards(BasicClientGuard),
    ApiOperation({
      summary,
      description:
        'Needs the client ID of an app, as a parameter or as the username of HTTP Basic authentication with an empty password.',
    }),
    ApiExtraModels(OauthErrors),
    ...Object.entries(ERRORS_OF_STATUS).map(OauthFails),
  );

// URLs end up in logs, so secrets must be in the body.
const InBodyOnly = () =>
  ApiBody({ description: 'Send the parameters in the body only, because URLs are logged.' });

function requireBody({ url }: Request): void {
  if (url.includes('?')) throw invalidRequest('send the parameters in the body');
}

@ApiTags('OAuth')
@UseFilters(OauthErrorFilter)
@Controller()
export class OauthController {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly tokens: OauthTokensService,
    private readonly devices: DeviceRequestsService,
    private readonly service: ServiceUrl,
    private readonly settings: Settings,
  ) {}

  @Post('oauth/token')
  @ForClients('Exchange a code, a refresh token or a device code for an access token')
  @InBodyOnly()
  // Some caches don't support Cache-Control.
  @Header('Pragma', 'no-cache')
  @ApiOkResponse({ type: TokensResponse })
  async token(@Req() req: Request, @Params() request: TokenRequest): Promise<TokensResponse> {
    requireBody(req);
    if (!GRANT_TYPES.includes(request.grant_type))
      throw new OauthError('unsupported_grant_type', 'unknown grant_type');
    await this.client(req, request.client_id);
    if (request.grant_type === 'refresh_token')
      return this.tokens.refresh(request.client_id, required(request, 'refresh_token'), request.scope);
    if (request.grant_type === DEVICE_GRANT) return this.tokenOfDevice(request);
    return this.tokens.exchange(request.client_id, required(request, 'code'), {
      redirect_uri: request.redirect_uri,
      code_verifier: required(request, 'code_verifier'),
    });
  }

  /** RFC 7009. A refresh token is revoked with all tokens of the same sign-in. */
  @Post('oauth/revoke')
  @ForClients('Revoke an access token or a refresh token')
  @InBodyOnly()
  @ApiOkResponse({ type: RevocationResponse, description: 'Success, even if the token is unknown.' })
  async revoke(
    @Req() req: Request,
    @Params() { client_id, token }: RevocationRequest,
  ): Promise<RevocationResponse> {
    requireBody(req);
    await this.client(req, client_id);
    await this.tokens.revoke(client_id, token);
    return {};
  }

  @Post('oauth/device')
  @ForClients('Start signing in on a device without a browser')
  // Each request stores a row, so this bounds the active requests of one IP address.
  @Throttle({ default: { limit: 60, ttl: LIFETIME_SECONDS * 1000 } })
  @ApiOkResponse({ type: DeviceAuthorizationResponse })
  async device(
    @Req() req: Request,
    @Params() { client_id, scope, code_challenge, code_challenge_method }: DeviceAuthorizationRequest,
  ): Promise<DeviceAuthorizationResponse> {
    const application = await this.client(req, client_id);
    const scopes = listOfScopes(scope, { lenient: this.settings.LENIENT_CLIENTS });
    const problem = problemOfScopes(scopes, application.scopes);
    if (problem) throw invalidScope(problem);
    if (code_challenge !== undefined && (code_challenge_method !== 'S256' || !CHALLENGE.test(code_challenge)))
      throw invalidRequest('code_challenge must be the S256 of a verifier, and code_challenge_method S256');
    const { device_code, user_code, ...times } = await this.devices.create(client_id, scopes, code_challenge);
    const verification_uri = `${this.service.url}/user/oauth/device`;
    return {
      device_code,
      user_code,
      verification_uri,
      verification_uri_complete: `${verification_uri}?code=${user_code}`,
      ...times,
    };
  }

  @Post('oauth/device/poll')
  @ForClients("Check the user's decision about a device")
  @InBodyOnly()
  @ApiOkResponse({ type: PollResponse })
  async poll(@Req() req: Request, @Params() { client_id, device_code }: PollRequest): Promise<PollResponse> {
    requireBody(req);
    const poll = await this.devices.poll(client_id, device_code);
    if (poll.status === 'slow_down')
      throw new OauthError('slow_down', `wait ${poll.interval} seconds`, 429, {
        'Retry-After': String(poll.interval),
      });
    if (poll.status !== 'approved') return poll as PollResponse;
    // Without a verifier, the code would be enough to get tokens.
    if (poll.code_challenge === null) throw invalidRequest('without a code_challenge, use /oauth/token');
    return { status: 'approved', code: poll.code };
  }

  @Get('.well-known/oauth-authorization-server')
  @ApiOperation({ summary: 'Get the metadata of the authorization server' })
  @Public()
  @ApiOkResponse({ type: ServerMetadata })
  metadata(): ServerMetadata {
    const issuer = this.service.url;
    return {
      issuer,
      authorization_endpoint: `${issuer}/user/oauth`,
      token_endpoint: `${issuer}/oauth/token`,
      device_authorization_endpoint: `${issuer}/oauth/device`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      service_documentation: `${issuer}/docs`,
      scopes_supported: Object.keys(SCOPES),
      response_types_supported: ['code', 'token'],
      response_modes_supported: ['query', 'fragment'],
      grant_types_supported: ['authorization_code', 'implicit', 'refresh_token', DEVICE_GRANT],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    };
  }

  private async client(req: Request, client_id: string): Promise<OauthApplication> {
    const application = await this.applications.application(client_id);
    if (!application) throw req.parametersInHeaders ? invalidBasicClient() : invalidClient();
    return application;
  }

  private async tokenOfDevice(request: TokenRequest): Promise<TokensResponse> {
    const { client_id, code_verifier } = request;
    const poll = await this.devices.poll(client_id, required(request, 'device_code'));
    if (poll.status === 'approved') return this.tokens.exchange(client_id, poll.code, { code_verifier });
    if (poll.status === 'slow_down') throw new OauthError('slow_down', `wait ${poll.interval} seconds`);
    throw new OauthError(...UNDECIDED[poll.status]);
  }
}

/** The errors of RFC 8628 for a device without tokens. */
const UNDECIDED: Record<'pending' | 'denied' | 'expired', [OauthErrorCode, string]> = {
  pending: ['authorization_pending', 'the user has not decided yet'],
  denied: ['access_denied', 'the user denied access'],
  expired: ['expired_token', 'the device code has expired or was used'],
};

function required(request: TokenRequest, name: keyof TokenRequest): string {
  const value = request[name];
  if (value === undefined) throw invalidRequest(`${name} is required`);
  return value;
}
