import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../auth/access';
import { Settings } from '../config/settings';
import { sendCacheable } from '../http/cacheable';
import { Fails } from '../http/openapi';
import { Parameters } from '../http/read-parameters';
import { BuildsService } from './builds.service';
import { LatestAnswer, LatestRequest } from './latest.dto';

@ApiTags('Builds')
@Controller('wharf')
export class WharfController {
  private readonly cacheControl: string;

  constructor(
    private readonly builds: BuildsService,
    settings: Settings,
  ) {
    this.cacheControl = `public, max-age=${settings.LATEST_MAX_AGE}`;
  }

  @Get('latest')
  @ApiOperation({
    summary: 'The newest version on a channel that players can have',
    description: 'Anyone may ask, of any game that is not private.',
  })
  @Public()
  @ApiOkResponse({ type: LatestAnswer, headers: { ETag: { schema: { type: 'string' } } } })
  @ApiResponse({ status: 304, description: 'If-None-Match names the answer that would be given' })
  @Fails(404, 'invalid game', 'invalid channel')
  async latest(
    @Parameters() request: LatestRequest,
    @Req() req: Request,
    @Res() res: Response,
  ): Promise<void> {
    sendCacheable(req, res, await this.builds.latest(request), this.cacheControl);
  }
}
