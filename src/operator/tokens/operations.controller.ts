import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Registry } from 'prom-client';
import { sendCacheable } from '../../platform/output/response';
import { MetricsService } from '../../platform/operations/metrics.service';
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
    summary: 'Get the metrics of this replica',
    description: 'Returns the metrics of METRICS_PORT in the text format of Prometheus.',
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
  @ApiResponse({ status: 304, description: 'The document is unchanged since the `ETag` in `If-None-Match`.' })
  @ApiOperation({
    summary: 'Get the OpenAPI 3.1 document for operators',
    description: 'Contains the routes that need an operator token.',
  })
  @ApiOkResponse({ schema: DOCUMENT, headers: { ETag: { schema: { type: 'string' } } } })
  openapi(@Req() req: Request, @Res() res: Response): void {
    sendCacheable(req, res, this.description.asJson('operator'), REVALIDATE);
  }
}
