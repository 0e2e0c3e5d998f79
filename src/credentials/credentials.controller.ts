import { Controller, Get, Req, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { AnyApiKey, AnyCredential } from '../auth/access/access';
import { Audit } from '../audit/audit';
import { type Credential, CurrentCredential } from '../auth/access/credential';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { modernTimestamp, formatTimestamp } from '../platform/formats/timestamps';
import { CredentialsInfoResponse, SubkeyResponse, SubkeyRequest } from './credentials.dto';
import { CredentialsService } from './credentials.service';

@ApiTags('Credentials')
@Controller('credentials')
export class CredentialsController {
  constructor(
    private readonly credentials: CredentialsService,
    private readonly audit: Audit,
  ) {}

  @Get('info')
  @ApiOperation({ summary: 'Get the type and scopes of the credential' })
  @AnyCredential()
  @ApiOkResponse({ type: CredentialsInfoResponse })
  info(@CurrentCredential() { type, scopes, client_id, expires_at }: Credential): CredentialsInfoResponse {
    return {
      type,
      scopes: [...scopes],
      ...(client_id === undefined ? {} : { oauth_application_id: client_id }),
      ...(expires_at === undefined ? {} : { expires_at: modernTimestamp(formatTimestamp(expires_at)) }),
    };
  }

  @Post('subkey')
  @ApiOperation({
    summary: 'Create a JWT for a launched game',
    description:
      'The JWT is valid for a short time, and at most as long as the key. An app needs the user’s consent to start games.',
  })
  @AnyApiKey()
  @ApiOkResponse({ type: SubkeyResponse })
  @Fails(
    403,
    'an api key is required',
    'api key does not permit `profile:me`',
    'the application may not start games',
  )
  @Fails(404, 'invalid game')
  async subkey(
    @Params() { game_id, scope }: SubkeyRequest,
    @CurrentCredential() parent: Credential,
    @Req() req: Request,
  ): Promise<SubkeyResponse> {
    const { key, expires_at } = await this.credentials.subkey(parent, game_id, scope);
    const { user_id, api_key_id } = parent;
    this.audit.note({ event: 'jwt.created', request_id: req.id, user_id, api_key_id, game_id });
    return { key, expires_at: modernTimestamp(formatTimestamp(expires_at)) };
  }
}
