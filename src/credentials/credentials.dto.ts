import { ApiProperty } from '@nestjs/swagger';
import { Id, NonEmptyText } from '../platform/http/parameters';

export class CredentialsInfoResponse {
  @ApiProperty({ enum: ['key', 'jwt'], description: 'An API key, or a JWT' })
  type: 'key' | 'jwt';

  @ApiProperty({
    type: [String],
    description: 'What the credential may do, sorted; an unscoped API key reaches all root scopes',
    example: ['profile:me'],
  })
  scopes: string[];

  @ApiProperty({ format: 'date-time', required: false, description: 'Of a JWT: when it ends' })
  expires_at?: string;
}

export class SubkeyRequest {
  @Id('The game that is launched; one that the user may view')
  game_id: number;

  @NonEmptyText('Scopes of a manifest, with spaces between them', {
    example: 'profile:me',
  })
  scope: string;
}

export class SubkeyResponse {
  @ApiProperty({ description: 'A JWT' })
  key: string;

  @ApiProperty({ format: 'date-time', description: 'When it ends' })
  expires_at: string;
}

export class PublishedKey {
  @ApiProperty({ enum: ['OKP'], description: 'The family of the key (RFC 8037)' })
  kty: string;

  @ApiProperty({ enum: ['Ed25519'], description: 'The curve of the key' })
  crv: string;

  @ApiProperty({ description: 'The public key, base64url' })
  x: string;

  @ApiProperty({ description: "`kid` in the header of the key's JWTs" })
  kid: string;

  @ApiProperty({ enum: ['EdDSA'], description: 'The algorithm that it signs with' })
  alg: string;

  @ApiProperty({ enum: ['sig'], description: 'It signs' })
  use: string;
}

export class PublishedKeysResponse {
  @ApiProperty({ type: [PublishedKey], description: 'Every key that a valid JWT may be signed with' })
  keys: PublishedKey[];
}
