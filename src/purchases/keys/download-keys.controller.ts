import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../auth/access/access';
import { type Credential, CurrentCredential } from '../../auth/access/credential';
import { StoreLinks } from '../../platform/config/store-links';
import { Params } from '../../platform/input/params.decorator';
import { LimitFailedLookups } from '../../platform/limits/rate-limits.decorators';
import { Fails } from '../../platform/server/routes';
import { DownloadKeyRequest, DownloadKeyResponse, downloadKeyResponse } from './download-key.dto';
import { DownloadKeysService } from './download-keys.service';

@ApiTags('Ownership')
@Controller('games/:game_id')
export class DownloadKeysController {
  constructor(
    private readonly keys: DownloadKeysService,
    private readonly links: StoreLinks,
  ) {}

  @Get('download_keys')
  @ApiOperation({
    // Generated clients and links to the API reference contain this operation ID.
    operationId: 'purchasesDownloadKey',
    summary: "Find a buyer's download key",
    description:
      'Finds the newest key that the buyer purchased or claimed. The account that the key belongs to owns the game.',
  })
  @Scopes('game:view:purchases')
  @LimitFailedLookups()
  @ApiOkResponse({ type: DownloadKeyResponse })
  @Fails(404, 'invalid game', 'invalid download key', 'no download key found')
  async find(
    @Params() request: DownloadKeyRequest,
    @CurrentCredential() { user_id }: Credential,
  ): Promise<DownloadKeyResponse> {
    const row = await this.keys.find(request, user_id);
    return { download_key: downloadKeyResponse(row, this.links) };
  }
}
