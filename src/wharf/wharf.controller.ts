import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../auth/access/access';
import { Fails } from '../platform/server/routes';
import { Params } from '../platform/input/params.decorator';
import { NewestBuilds } from './newest-builds';
import { LatestResponse, LatestRequest } from './latest.dto';

@ApiTags('Builds')
@Controller('wharf')
export class WharfController {
  constructor(private readonly newestBuilds: NewestBuilds) {}

  @Get('latest')
  @ApiOperation({
    summary: 'Get the newest version on a channel',
    description: 'Works for any game that is not private.',
  })
  @Public()
  @ApiOkResponse({ type: LatestResponse, headers: { ETag: { schema: { type: 'string' } } } })
  @ApiResponse({ status: 304, description: 'The version is unchanged since the `ETag` in `If-None-Match`.' })
  @Fails(404, 'invalid game', 'invalid channel')
  latest(@Params() request: LatestRequest, @Req() req: Request, @Res() res: Response): Promise<void> {
    return this.newestBuilds.send(request, req, res);
  }
}
