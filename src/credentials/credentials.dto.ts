import { ApiProperty } from '@nestjs/swagger';
import { IntegerParameter, SelectorParameter } from '../http/parameters';

export class CredentialsInfoAnswer {
  @ApiProperty({ enum: ['key', 'jwt'] })
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
  @IntegerParameter('The game that is launched; one that the user may view', { required: true })
  game_id: number;

  @SelectorParameter('Scopes of a manifest, with spaces between them', {
    required: true,
    example: 'profile:me',
  })
  scope: string;
}

export class SubkeyAnswer {
  @ApiProperty({ description: 'A JWT' })
  key: string;

  @ApiProperty({ format: 'date-time' })
  expires_at: string;
}

export class PublishedKey {
  @ApiProperty({ enum: ['OKP'] })
  kty: string;

  @ApiProperty({ enum: ['Ed25519'] })
  crv: string;

  @ApiProperty({ description: 'The public key, base64url' })
  x: string;

  @ApiProperty({ description: "Stands in the header of the key's JWTs" })
  kid: string;

  @ApiProperty({ enum: ['EdDSA'] })
  alg: string;

  @ApiProperty({ enum: ['sig'] })
  use: string;
}

export class PublishedKeysAnswer {
  @ApiProperty({ type: [PublishedKey] })
  keys: PublishedKey[];
}
