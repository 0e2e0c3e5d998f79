import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IntegerField, TimeField, UrlField } from '../../platform/openapi/fields';
import { MaxCharacters, NonEmptyText, OneOf, Text } from '../../platform/input/parameters';
import { MAX_SCOPES } from '../access/scopes';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT];

const Value = (max: number, description: string, options?: Parameters<typeof NonEmptyText>[1]) =>
  applyDecorators(NonEmptyText(description, options), MaxCharacters(max));
const OptionalValue = (max: number, description: string) => Value(max, description, { required: false });
/** A text parameter that may be empty. */
const OptionalText = (max: number, description: string) =>
  applyDecorators(Text(description, { required: false }), MaxCharacters(max));

const ClientId = () =>
  applyDecorators(
    Value(
      200,
      'Client ID of the app. Required, unless it is the username of HTTP Basic (without a password)',
    ),
    // The parameter is optional in OpenAPI, because BasicClientGuard can read the client ID from the header.
    ApiProperty({ required: false }),
  );

export class TokenRequest {
  @Value(200, `One of ${GRANT_TYPES.join(', ')}`, { example: 'authorization_code' })
  grant_type: string;

  @ClientId()
  client_id: string;

  @OptionalValue(200, 'Code, for `authorization_code`')
  code?: string;

  @OptionalText(2000, 'Redirect URI of the authorization request if it had one, for `authorization_code`')
  redirect_uri?: string;

  @OptionalValue(128, 'Verifier of the `code_challenge`')
  code_verifier?: string;

  @OptionalValue(200, 'Newest refresh token, for `refresh_token`')
  refresh_token?: string;

  @OptionalText(MAX_SCOPES, 'Subset of the granted scopes, for `refresh_token`')
  scope?: string;

  @OptionalValue(200, 'Device code, for the device grant')
  device_code?: string;
}

export class DeviceAuthorizationRequest {
  @ClientId()
  client_id: string;

  // The scope is required but validated later, because the error for a missing one is invalid_scope.
  @ApiProperty({ required: true })
  @OptionalText(MAX_SCOPES, 'Scopes, separated by spaces')
  scope?: string;

  @OptionalValue(
    128,
    'Base64url of the SHA-256 of a verifier. Without it, only `/oauth/token` returns tokens',
  )
  code_challenge?: string;

  @Text('Method of the `code_challenge`', { required: false })
  @OneOf(['S256'])
  code_challenge_method?: string;
}

export class RevocationRequest {
  @ClientId()
  client_id: string;

  @Value(1000, 'Access token or refresh token of the app')
  token: string;

  @OptionalText(100, 'Has no effect: both token types are looked up')
  token_type_hint?: string;
}

export class PollRequest {
  @ClientId()
  client_id: string;

  @Value(200, 'Device code')
  device_code: string;
}

class TokenKey {
  @IntegerField('ID of the key')
  id: number;

  @IntegerField('ID of the user')
  user_id: number;

  @ApiProperty({
    description: 'Access token, or with `LENIENT_CLIENTS` a key that lasts until it is revoked',
  })
  key: string;

  @TimeField('Time of creation')
  created_at: string;
}

export class TokensResponse {
  @ApiProperty({ description: 'Access token for the `Authorization` header' })
  access_token: string;

  @ApiProperty({ enum: ['bearer'], description: 'Type of the token' })
  token_type: 'bearer';

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 3600 })
  expires_in: number;

  @ApiProperty({ description: 'Single-use refresh token' })
  refresh_token: string;

  @ApiProperty({ description: 'Scopes of the token, separated by spaces', example: 'profile:me' })
  scope: string;

  @ApiProperty({ type: TokenKey, description: 'Key for clients that can’t refresh' })
  key: TokenKey;
}

export class DeviceAuthorizationResponse {
  @ApiProperty({ description: 'Code that only the device knows' })
  device_code: string;

  @ApiProperty({ description: 'Code that the user enters', example: 'LVTD-HGCC' })
  user_code: string;

  @UrlField('URL of the page where the user enters the code')
  verification_uri: string;

  @UrlField('URL of the page with the code filled in, for a QR code')
  verification_uri_complete: string;

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 600 })
  expires_in: number;

  @ApiProperty({ type: 'integer', description: 'Seconds to wait between two polls', example: 5 })
  interval: number;
}

export class PollResponse {
  @ApiProperty({ enum: ['pending', 'approved', 'denied', 'expired'], description: 'State of the request' })
  status: 'pending' | 'approved' | 'denied' | 'expired';

  @ApiPropertyOptional({
    description: 'Code to exchange at `/oauth/token` within 60 seconds; only if approved',
  })
  code?: string;

  @ApiPropertyOptional({ type: 'integer', description: 'Seconds until the next poll; only while pending' })
  interval?: number;
}

/** The response is empty, because clients ignore its body (RFC 7009). */
export class RevocationResponse {}

export class OauthErrors {
  @ApiProperty({ type: [String], minItems: 1, description: 'Errors, as in all responses of this API' })
  errors: string[];

  @ApiProperty({ example: 'invalid_grant', description: 'Error code (RFC 6749)' })
  error: string;

  @ApiProperty({ description: 'Description of the error for developers' })
  error_description: string;
}

const Names = (description: string) => ApiProperty({ type: [String], description });

/** Authorization server metadata (RFC 8414). */
export class ServerMetadata {
  @UrlField('Issuer; `iss` in authorization responses') issuer: string;
  @UrlField('Page where the user allows the app') authorization_endpoint: string;
  @UrlField('Exchanges codes and refresh tokens for access tokens') token_endpoint: string;
  @UrlField('Starts the device flow') device_authorization_endpoint: string;
  @UrlField('Revokes tokens') revocation_endpoint: string;
  @UrlField('Public keys of JWTs') jwks_uri: string;
  @UrlField('API reference') service_documentation: string;
  @Names('Scopes that an app can request') scopes_supported: string[];
  @Names('Supported values of `response_type`') response_types_supported: string[];
  @Names('Parts of the redirect URI that can contain the response') response_modes_supported: string[];
  @Names('Supported values of `grant_type`') grant_types_supported: string[];
  @Names('How a client identifies itself at the token endpoint')
  token_endpoint_auth_methods_supported: string[];
  @Names('How a client identifies itself at the revocation endpoint')
  revocation_endpoint_auth_methods_supported: string[];
  @Names('Supported values of `code_challenge_method`') code_challenge_methods_supported: string[];
  @ApiProperty({ description: 'Authorization responses contain `iss` (RFC 9207)' })
  authorization_response_iss_parameter_supported: boolean;
}
