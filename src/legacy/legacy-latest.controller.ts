import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../auth/access/access';
import { Params } from '../platform/input/params.decorator';
import { Fails } from '../platform/server/routes';
import { LatestRequest, LatestResponse } from '../wharf/latest.dto';
import { NewestBuilds } from '../wharf/newest-builds';

/** Most programs request the newest build here, although the legacy API has no such path. Needs LENIENT_CLIENTS. */
@ApiTags('Legacy')
@ApiParam({
  name: 'KEY',
  description: 'Any text; ignored',
  schema: { type: 'string', minLength: 1 },
  example: 'key',
})
@Controller('api/1/:KEY')
export class LegacyLatestController {
  constructor(private readonly newestBuilds: NewestBuilds) {}

  @Get('wharf/latest')
  @Public()
  @ApiOperation({
    deprecated: true,
    summary: 'Get the newest version on a channel',
    description: 'Replaced by `/wharf/latest`.',
  })
  @ApiOkResponse({ type: LatestResponse, headers: { ETag: { schema: { type: 'string' } } } })
  @ApiResponse({ status: 304, description: 'The version is unchanged since the `ETag` in `If-None-Match`.' })
  @Fails(404, 'invalid game', 'invalid channel')
  latest(@Params() request: LatestRequest, @Req() req: Request, @Res() res: Response): Promise<void> {
    return this.newestBuilds.send(request, req, res);
  }
}
