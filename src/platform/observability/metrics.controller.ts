import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Registry } from 'prom-client';
import { OperatorMay } from '../../auth/access';
import { MetricsService } from './metrics.service';

@ApiTags('Operations')
@Controller('operator')
export class MetricsController {
  constructor(private readonly metrics: MetricsService) {}

  @Get('metrics')
  @OperatorMay('metrics')
  @ApiOperation({
    summary: 'The metrics of the replica that answers, for Prometheus',
    description: 'The same as on METRICS_PORT, which needs no token and is not public.',
  })
  @ApiOkResponse({ content: { 'text/plain': { schema: { type: 'string' } } } })
  async read(@Res() res: Response): Promise<void> {
    const text = await this.metrics.text();
    res.setHeader('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE);
    res.setHeader('Content-Length', Buffer.byteLength(text));
    res.end(text);
  }
}
