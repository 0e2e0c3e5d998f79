import { Controller, Get, Header } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Public } from '../auth/access/access';
import { publicJwk } from '../auth/jwt/signing-key';
import { PUBLISHED_FOR_SECONDS, SigningKeysService } from '../auth/jwt/signing-keys.service';
import { PublishedKeysResponse } from './credentials.dto';

@ApiTags('Credentials')
@Controller('.well-known')
export class PublishedKeysController {
  constructor(private readonly signingKeys: SigningKeysService) {}

  @Get('jwks.json')
  @ApiOperation({
    summary: 'List the public keys that verify JWTs',
    description: 'A JSON Web Key Set (RFC 7517), for programs that verify JWTs offline.',
  })
  @Public()
  @Header('Cache-Control', `public, max-age=${PUBLISHED_FOR_SECONDS}`)
  @ApiOkResponse({ type: PublishedKeysResponse })
  async jwks(): Promise<PublishedKeysResponse> {
    const keys = await this.signingKeys.published();
    return { keys: keys.map(publicJwk) };
  }
}
