import { ApiProperty } from '@nestjs/swagger';

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
