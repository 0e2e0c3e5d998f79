import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { MAX_SCOPES } from '../auth/access/scopes';
import { TimeField } from '../platform/openapi/fields';
import { Id, MaxCharacters, NonEmptyText } from '../platform/input/parameters';

export class CredentialsInfoResponse {
  @ApiProperty({ enum: ['key', 'jwt'], description: 'Type of the credential' })
  type: 'key' | 'jwt';

  @ApiProperty({
    type: [String],
    description: 'Scopes of the credential, sorted; an API key without scopes has all root scopes',
    example: ['profile:me'],
  })
  scopes: string[];

  @ApiPropertyOptional({
    description: "Client ID of the app that holds the token; absent for a user's own key",
  })
  oauth_application_id?: string;

  @TimeField('Expiry of a JWT; absent for an API key', undefined, { required: false })
  expires_at?: string;
}

export class SubkeyRequest {
  @Id('ID of the launched game, which the user must be able to see')
  game_id: number;

  @NonEmptyText('Scopes in the manifest of the game, separated by spaces', {
    example: 'profile:me',
  })
  @MaxCharacters(MAX_SCOPES)
  scope: string;
}

export class SubkeyResponse {
  @ApiProperty({ description: 'JWT' })
  key: string;

  @TimeField('Expiry of the JWT')
  expires_at: string;
}

export class PublishedKey {
  @ApiProperty({ enum: ['OKP'], description: 'Key type (RFC 8037)' })
  kty: string;

  @ApiProperty({ enum: ['Ed25519'], description: 'Curve of the key' })
  crv: string;

  @ApiProperty({ description: 'Public key, as base64url' })
  x: string;

  @ApiProperty({ description: "`kid` in the header of the key's JWTs" })
  kid: string;

  @ApiProperty({ enum: ['EdDSA'], description: 'Signature algorithm' })
  alg: string;

  @ApiProperty({ enum: ['sig'], description: 'Use of the key' })
  use: string;
}

export class PublishedKeysResponse {
  @ApiProperty({
    type: [PublishedKey],
    description: 'Keys that sign JWTs now or soon, and keys of JWTs that are still valid',
  })
  keys: PublishedKey[];
}
