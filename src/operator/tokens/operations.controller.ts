import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Registry } from 'prom-client';
import { sendCacheable } from '../../platform/http/answer';
import { MetricsService } from '../../platform/observability/metrics.service';
import { ApiDescription } from '../../platform/openapi/api-description';
import { DOCUMENT, REVALIDATE } from '../../platform/openapi/reference.controller';
import { OperatorMay } from './operator-may';

@ApiTags('Operations')
@Controller('operator')
export class OperationsController {
  constructor(
    private readonly metrics: MetricsService,
    private readonly description: ApiDescription,
  ) {}

  @Get('metrics')
  @OperatorMay('metrics')
  @ApiOperation({
    summary: 'The metrics of the replica that answers, for Prometheus',
    description: 'The same as on METRICS_PORT, which needs no token and is not public.',
  })
  @ApiOkResponse({ content: { 'text/plain': { schema: { type: 'string' } } } })
  async readMetrics(@Res() res: Response): Promise<void> {
    const text = await this.metrics.text();
    res.setHeader('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE);
    res.setHeader('Content-Length', Buffer.byteLength(text));
    res.end(text);
  }

  @Get('openapi.json')
  @OperatorMay()
  @ApiResponse({ status: 304, description: 'If-None-Match names the answer that would be given' })
  @ApiOperation({
    summary: 'This description, as OpenAPI 3.1',
    description: 'Of the routes that need an operator token, and of no other.',
  })
  @ApiOkResponse({ schema: DOCUMENT })
  openapi(@Req() req: Request, @Res() res: Response): void {
    sendCacheable(req, res, this.description.asJson('operator'), REVALIDATE);
  }
}
