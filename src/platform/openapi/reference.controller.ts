import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../server/public';
import { sendCacheable } from '../output/response';
import { ServiceUrl } from '../server/service-url';
import { ApiDescription } from './api-description';
import { llmsText } from './llms';

// Cached, but validated each time, so that an upgrade is visible immediately.
export const REVALIDATE = 'no-cache';

export const DOCUMENT = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: {
    openapi: { type: 'string', example: '3.1.0', description: 'Version of OpenAPI' },
    info: { type: 'object', description: 'Title and introduction' },
    paths: { type: 'object', description: 'Operations by path and method' },
  },
};

@ApiTags('Operations')
@Controller()
export class ReferenceController {
  private llms: string | undefined;

  constructor(
    private readonly description: ApiDescription,
    private readonly service: ServiceUrl,
  ) {}

  @Get('openapi.json')
  @Public()
  @ApiResponse({ status: 304, description: 'The document is unchanged since the `ETag` in `If-None-Match`.' })
  @ApiOperation({ summary: 'Get the OpenAPI 3.1 document of this API' })
  @ApiOkResponse({ schema: DOCUMENT, headers: { ETag: { schema: { type: 'string' } } } })
  openapi(@Req() req: Request, @Res() res: Response): void {
    sendCacheable(req, res, this.description.asJson('everybody'), REVALIDATE);
  }

  @Get('llms.txt')
  @Public()
  @ApiExcludeEndpoint()
  llmsTxt(@Res() res: Response): void {
    this.llms ??= llmsText(this.description.document('everybody'), this.service.url);
    res.type('text/plain').setHeader('Cache-Control', REVALIDATE);
    res.send(this.llms);
  }
}
