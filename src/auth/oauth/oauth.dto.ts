import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { MaxCharacters, NonEmptyText, OneOf, Text } from '../../platform/http/parameters';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT];

const ClientId = () =>
  applyDecorators(
    NonEmptyText(
      'Client ID of the app. Required, unless it is the username of HTTP Basic (without a password)',
    ),
    // BasicClientGuard takes it from the header.
    ApiProperty({ required: false }),
  );

export class TokenRequest {
  @MaxCharacters(200)
  @NonEmptyText(`One of ${GRANT_TYPES.join(', ')}`, { example: 'authorization_code' })
  grant_type: string;

  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(200)
  @NonEmptyText('Code, for `authorization_code`', { required: false })
  code?: string;

  @MaxCharacters(2000)
  @Text('Redirect URI of the authorization request if it had one, for `authorization_code`', {
    required: false,
  })
  redirect_uri?: string;

  @MaxCharacters(128)
  @NonEmptyText('Verifier of the `code_challenge`', { required: false })
  code_verifier?: string;

  @MaxCharacters(200)
  @NonEmptyText('Newest refresh token, for `refresh_token`', { required: false })
  refresh_token?: string;

  @MaxCharacters(1000)
  @Text('Subset of the granted scopes, for `refresh_token`', { required: false })
  scope?: string;

  @MaxCharacters(200)
  @NonEmptyText('Device code, for the device grant', { required: false })
  device_code?: string;
}

export class DeviceAuthorizationRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(1000)
  // Required, but the error for a missing scope is invalid_scope.
  @ApiProperty({ required: true })
  @Text('Scopes, separated by spaces', { required: false })
  scope?: string;

  @MaxCharacters(128)
  @NonEmptyText('Base64url of the SHA-256 of a verifier. Without it, only `/oauth/token` returns tokens', {
    required: false,
  })
  code_challenge?: string;

  @Text('Method of the `code_challenge`', { required: false })
  @OneOf(['S256'])
  code_challenge_method?: string;
}

export class RevocationRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(1000)
  @NonEmptyText('Access token or refresh token of the app')
  token: string;

  @MaxCharacters(100)
  @Text('Has no effect: both token types are looked up', { required: false })
  token_type_hint?: string;
}

export class PollRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(200)
  @NonEmptyText('Device code')
  device_code: string;
}

class TokenKey {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'ID of the key' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'ID of the user' })
  user_id: number;

  @ApiProperty({ description: 'Access token' })
  key: string;

  @ApiProperty({ format: 'date-time', example: '2026-01-02T03:04:05Z', description: 'Time of creation' })
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

  @ApiProperty({ type: TokenKey, description: 'Access token, for clients that expect it here' })
  key: TokenKey;
}

export class DeviceAuthorizationResponse {
  @ApiProperty({ description: 'Code that only the device knows' })
  device_code: string;

  @ApiProperty({ description: 'Code that the user enters', example: 'LVTD-HGCC' })
  user_code: string;

  @ApiProperty({ format: 'uri', description: 'URL of the page where the user enters the code' })
  verification_uri: string;

  @ApiProperty({ format: 'uri', description: 'URL of the page with the code filled in, for a QR code' })
  verification_uri_complete: string;

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 600 })
  expires_in: number;

  @ApiProperty({ type: 'integer', description: 'Seconds to wait between two polls', example: 5 })
  interval: number;
}

export class PollResponse {
  @ApiProperty({
    enum: ['pending', 'approved', 'denied', 'expired'],
    description: 'State of the request',
  })
  status: 'pending' | 'approved' | 'denied' | 'expired';

  @ApiProperty({
    required: false,
    description: 'Code to exchange at `/oauth/token` within 60 seconds; only if approved',
  })
  code?: string;

  @ApiProperty({
    type: 'integer',
    required: false,
    description: 'Seconds until the next poll; only while pending',
  })
  interval?: number;
}

/** Empty, by RFC 7009. */
export class RevocationResponse {}

export class OauthErrors {
  @ApiProperty({ type: [String], minItems: 1, description: 'Errors, as in all responses of this API' })
  errors: string[];

  @ApiProperty({ example: 'invalid_grant', description: 'Error code (RFC 6749)' })
  error: string;

  @ApiProperty({ description: 'Description of the error for developers' })
  error_description: string;
}

const ADDRESS = { format: 'uri' } as const;
const NAMES: { type: [typeof String] } = { type: [String] };

/** RFC 8414. */
export class ServerMetadata {
  @ApiProperty({ ...ADDRESS, description: 'Issuer; `iss` in authorization responses' })
  issuer: string;

  @ApiProperty({ ...ADDRESS, description: 'Page where the user allows the app' })
  authorization_endpoint: string;

  @ApiProperty({ ...ADDRESS, description: 'Exchanges codes and refresh tokens for access tokens' })
  token_endpoint: string;

  @ApiProperty({ ...ADDRESS, description: 'Starts the device flow' })
  device_authorization_endpoint: string;

  @ApiProperty({ ...ADDRESS, description: 'Revokes tokens' })
  revocation_endpoint: string;

  @ApiProperty({ ...ADDRESS, description: 'Public keys of JWTs' })
  jwks_uri: string;

  @ApiProperty({ ...ADDRESS, description: 'API reference' })
  service_documentation: string;

  @ApiProperty({ ...NAMES, description: 'Scopes that an app can request' })
  scopes_supported: string[];

  @ApiProperty({ ...NAMES, description: 'Supported values of `response_type`' })
  response_types_supported: string[];

  @ApiProperty({ ...NAMES, description: 'Parts of the redirect URI that can contain the response' })
  response_modes_supported: string[];

  @ApiProperty({ ...NAMES, description: 'Supported values of `grant_type`' })
  grant_types_supported: string[];

  @ApiProperty({ ...NAMES, description: 'How a client identifies itself at the token endpoint' })
  token_endpoint_auth_methods_supported: string[];

  @ApiProperty({ ...NAMES, description: 'How a client identifies itself at the revocation endpoint' })
  revocation_endpoint_auth_methods_supported: string[];

  @ApiProperty({ ...NAMES, description: 'Supported values of `code_challenge_method`' })
  code_challenge_methods_supported: string[];

  @ApiProperty({ description: 'Authorization responses contain `iss` (RFC 9207)' })
  authorization_response_iss_parameter_supported: boolean;
}
