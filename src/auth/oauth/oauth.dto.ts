import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { MaxCharacters, NonEmptyText, OneOf, Text } from '../../platform/http/parameters';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT];

const ClientId = () =>
  applyDecorators(
    NonEmptyText('The application. Required, unless it is the user of HTTP Basic (without a password)'),
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
  @NonEmptyText('The code, for authorization_code', { required: false })
  code?: string;

  @MaxCharacters(2000)
  @Text(
    'The address that the code was sent to, for authorization_code, where the authorization request named it',
    { required: false },
  )
  redirect_uri?: string;

  @MaxCharacters(128)
  @NonEmptyText('What the code_challenge was made from', { required: false })
  code_verifier?: string;

  @MaxCharacters(200)
  @NonEmptyText('The newest refresh token, for refresh_token', { required: false })
  refresh_token?: string;

  @MaxCharacters(1000)
  @Text('Fewer scopes than were granted, for refresh_token', { required: false })
  scope?: string;

  @MaxCharacters(200)
  @NonEmptyText('The device code, for the device grant', { required: false })
  device_code?: string;
}

export class DeviceAuthorizationRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(1000)
  // Required, but the error of a missing scope is invalid_scope.
  @ApiProperty({ required: true })
  @Text('Scopes, separated by spaces', { required: false })
  scope?: string;

  @MaxCharacters(128)
  @NonEmptyText(
    'The base64url of the SHA-256 of a verifier that the device keeps; without it only /oauth/token gives tokens',
    { required: false },
  )
  code_challenge?: string;

  @Text('How the challenge was made', { required: false })
  @OneOf(['S256'])
  code_challenge_method?: string;
}

export class RevocationRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(1000)
  @NonEmptyText('An access token or a refresh token of the application')
  token: string;

  @MaxCharacters(100)
  @Text('Makes no difference: both kinds are looked for', { required: false })
  token_type_hint?: string;
}

export class PollRequest {
  @MaxCharacters(200)
  @ClientId()
  client_id: string;

  @MaxCharacters(200)
  @NonEmptyText('The device code')
  device_code: string;
}

class TokenKey {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'The key’s id' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'Whom it acts for' })
  user_id: number;

  @ApiProperty({ description: 'The access token again' })
  key: string;

  @ApiProperty({ format: 'date-time', example: '2026-01-02T03:04:05Z', description: 'Time of creation' })
  created_at: string;
}

export class TokensResponse {
  @ApiProperty({ description: 'Goes into the Authorization header' })
  access_token: string;

  @ApiProperty({ enum: ['bearer'], description: 'How the token is sent' })
  token_type: 'bearer';

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 3600 })
  expires_in: number;

  @ApiProperty({ description: 'Single-use refresh token' })
  refresh_token: string;

  @ApiProperty({ description: 'What the token permits, separated by spaces', example: 'profile:me' })
  scope: string;

  @ApiProperty({ type: TokenKey, description: 'The access token, for clients that look here' })
  key: TokenKey;
}

export class DeviceAuthorizationResponse {
  @ApiProperty({ description: 'For the device alone' })
  device_code: string;

  @ApiProperty({ description: 'For the user to enter', example: 'LVTD-HGCC' })
  user_code: string;

  @ApiProperty({ format: 'uri', description: 'Where the user enters it' })
  verification_uri: string;

  @ApiProperty({ format: 'uri', description: 'The same with the code in it, to be shown as a QR code' })
  verification_uri_complete: string;

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 600 })
  expires_in: number;

  @ApiProperty({ type: 'integer', description: 'Seconds to wait between two polls', example: 5 })
  interval: number;
}

export class PollResponse {
  @ApiProperty({
    enum: ['pending', 'approved', 'denied', 'expired'],
    description: 'What the user has decided',
  })
  status: 'pending' | 'approved' | 'denied' | 'expired';

  @ApiProperty({
    required: false,
    description: 'When approved: to be exchanged at /oauth/token within 60 seconds',
  })
  code?: string;

  @ApiProperty({
    type: 'integer',
    required: false,
    description: 'While pending: seconds until the next poll',
  })
  interval?: number;
}

/** Empty, by RFC 7009. */
export class RevocationResponse {}

export class OauthErrors {
  @ApiProperty({ type: [String], minItems: 1, description: 'What went wrong, as everywhere in this API' })
  errors: string[];

  @ApiProperty({ example: 'invalid_grant', description: 'The code of the error (RFC 6749)' })
  error: string;

  @ApiProperty({ description: 'The same as a text for developers' })
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
