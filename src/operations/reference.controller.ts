import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { OperatorMay, Public } from '../auth/access';
import { type Cacheable, cacheable, isKnown, sendCacheable } from '../http/answer';
import { ApiDescription } from './api-description';

const asset = (name: string) => cacheable(readFileSync(join(__dirname, 'assets', name), 'utf8'));

// The page loads nothing from other hosts.
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'";
// Cached, but validated each time, so that an upgrade shows at once.
const REVALIDATE = 'no-cache';

const DOCUMENT = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: {
    openapi: { type: 'string', example: '3.1.0' },
    info: { type: 'object' },
    paths: { type: 'object' },
  },
};

@ApiTags('Operations')
@Controller()
export class ReferenceController {
  private readonly style = asset('reference.css');
  private readonly script = asset('reference.js');

  constructor(private readonly description: ApiDescription) {}

  @Get('openapi.json')
  @Public()
  @ApiResponse({ status: 304, description: 'If-None-Match names the answer that would be given' })
  @ApiOperation({ summary: 'This description, as OpenAPI 3.1' })
  @ApiOkResponse({ schema: DOCUMENT })
  openapi(@Req() req: Request, @Res() res: Response): void {
    sendCacheable(req, res, this.description.asJson('everybody'), REVALIDATE);
  }

  @Get('operator/openapi.json')
  @OperatorMay()
  @ApiResponse({ status: 304, description: 'If-None-Match names the answer that would be given' })
  @ApiOperation({
    summary: 'This description, as OpenAPI 3.1',
    description: 'Of the routes that need an operator token, and of no other.',
  })
  @ApiOkResponse({ schema: DOCUMENT })
  operatorOpenapi(@Req() req: Request, @Res() res: Response): void {
    sendCacheable(req, res, this.description.asJson('operator'), REVALIDATE);
  }

  /** The reference page, with a form to try each request. */
  @Get('docs')
  @Public()
  @ApiExcludeEndpoint()
  page(@Req() req: Request, @Res() res: Response): void {
    send(req, res, this.description.asPage(), 'text/html; charset=utf-8');
  }

  @Get('docs/reference.css')
  @Public()
  @ApiExcludeEndpoint()
  css(@Req() req: Request, @Res() res: Response): void {
    send(req, res, this.style, 'text/css; charset=utf-8');
  }

  @Get('docs/reference.js')
  @Public()
  @ApiExcludeEndpoint()
  js(@Req() req: Request, @Res() res: Response): void {
    send(req, res, this.script, 'text/javascript; charset=utf-8');
  }
}

function send(req: Request, res: Response, { body, etag }: Cacheable, type: string): void {
  res.setHeader('Content-Security-Policy', POLICY);
  res.setHeader('Content-Type', type);
  res.setHeader('Cache-Control', REVALIDATE);
  res.setHeader('ETag', etag);
  if (isKnown(req.headers['if-none-match'], etag)) {
    res.statusCode = 304;
    res.end();
    return;
  }
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}
