import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { SelectorParameter, TextParameter } from '../../http/parameters';
import { MaxCharacters } from '../../http/parameters';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT];

const ClientIdParameter = () =>
  SelectorParameter('The application. Required, unless it is the user of HTTP Basic (without a password)', {
    required: true,
    mayBeInHeader: true,
  });

export class TokenRequest {
  @MaxCharacters(200)
  @SelectorParameter(`One of ${GRANT_TYPES.join(', ')}`, { required: true, example: 'authorization_code' })
  grant_type: string;

  @MaxCharacters(200)
  @ClientIdParameter()
  client_id: string;

  @MaxCharacters(200)
  @SelectorParameter('The code, for authorization_code')
  code?: string;

  @MaxCharacters(2000)
  @TextParameter(
    'The address that the code was sent to, for authorization_code, where the authorization request named it',
  )
  redirect_uri?: string;

  @MaxCharacters(128)
  @SelectorParameter('What the code_challenge was made from')
  code_verifier?: string;

  @MaxCharacters(200)
  @SelectorParameter('The newest refresh token, for refresh_token')
  refresh_token?: string;

  @MaxCharacters(1000)
  @TextParameter('Fewer scopes than were granted, for refresh_token')
  scope?: string;

  @MaxCharacters(200)
  @SelectorParameter('The device code, for the device grant')
  device_code?: string;
}

export class DeviceAuthorizationRequest {
  @MaxCharacters(200)
  @ClientIdParameter()
  client_id: string;

  @MaxCharacters(1000)
  @TextParameter('Scopes, separated by spaces')
  scope?: string;

  @MaxCharacters(128)
  @SelectorParameter(
    'The base64url of the SHA-256 of a verifier that the device keeps; without it only /oauth/token gives tokens',
  )
  code_challenge?: string;

  @TextParameter('How the challenge was made')
  @IsIn(['S256'])
  code_challenge_method?: string;
}

export class RevocationRequest {
  @MaxCharacters(200)
  @ClientIdParameter()
  client_id: string;

  @MaxCharacters(1000)
  @SelectorParameter('An access token or a refresh token of the application', { required: true })
  token: string;

  @MaxCharacters(100)
  @TextParameter('Makes no difference: both kinds are looked for')
  token_type_hint?: string;
}

export class PollRequest {
  @MaxCharacters(200)
  @ClientIdParameter()
  client_id: string;

  @MaxCharacters(200)
  @SelectorParameter('The device code', { required: true })
  device_code: string;
}

class TokenKey {
  @ApiProperty({ type: 'integer', format: 'int64' })
  id: number;

  @ApiProperty({ type: 'integer', format: 'int64' })
  user_id: number;

  @ApiProperty({ description: 'The access token again' })
  key: string;
}

export class TokensAnswer {
  @ApiProperty()
  access_token: string;

  @ApiProperty({ enum: ['bearer'] })
  token_type: 'bearer';

  @ApiProperty({ type: 'integer', description: 'Seconds', example: 3600 })
  expires_in: number;

  @ApiProperty({ description: 'Good once' })
  refresh_token: string;

  @ApiProperty({ description: 'What the token permits, separated by spaces', example: 'profile:me' })
  scope: string;

  @ApiProperty({ type: TokenKey })
  key: TokenKey;
}

export class DeviceAuthorizationAnswer {
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

export class PollAnswer {
  @ApiProperty({ enum: ['pending', 'approved', 'denied', 'expired'] })
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
export class RevocationAnswer {}

export class OauthErrors {
  @ApiProperty({ type: [String], minItems: 1 })
  errors: string[];

  @ApiProperty({ example: 'invalid_grant' })
  error: string;

  @ApiProperty()
  error_description: string;
}

const ADDRESS = { format: 'uri' } as const;
const NAMES: { type: [typeof String] } = { type: [String] };

/** RFC 8414. */
export class ServerMetadata {
  @ApiProperty(ADDRESS)
  issuer: string;

  @ApiProperty(ADDRESS)
  authorization_endpoint: string;

  @ApiProperty(ADDRESS)
  token_endpoint: string;

  @ApiProperty(ADDRESS)
  device_authorization_endpoint: string;

  @ApiProperty(ADDRESS)
  revocation_endpoint: string;

  @ApiProperty(ADDRESS)
  jwks_uri: string;

  @ApiProperty(ADDRESS)
  service_documentation: string;

  @ApiProperty(NAMES)
  scopes_supported: string[];

  @ApiProperty(NAMES)
  response_types_supported: string[];

  @ApiProperty(NAMES)
  response_modes_supported: string[];

  @ApiProperty(NAMES)
  grant_types_supported: string[];

  @ApiProperty(NAMES)
  token_endpoint_auth_methods_supported: string[];

  @ApiProperty(NAMES)
  revocation_endpoint_auth_methods_supported: string[];

  @ApiProperty(NAMES)
  code_challenge_methods_supported: string[];

  @ApiProperty()
  authorization_response_iss_parameter_supported: boolean;
}
