import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { AnyCredential } from '../auth/access';
import { type Credential, CurrentCredential } from '../auth/credential';
import { modernTimestamp, timestampOf } from '../http/timestamps';
import { CredentialsInfoAnswer } from './credentials.dto';

@ApiTags('Credentials')
@Controller('credentials')
export class CredentialsController {
  /** What the credential of this request is, and what it may do. */
  @Get('info')
  @AnyCredential()
  @ApiOkResponse({ type: CredentialsInfoAnswer })
  info(@CurrentCredential() { type, scopes, expires_at }: Credential): CredentialsInfoAnswer {
    return {
      type,
      scopes: [...scopes],
      ...(expires_at === undefined ? {} : { expires_at: modernTimestamp(timestampOf(expires_at)) }),
    };
  }
}
