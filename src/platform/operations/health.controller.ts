import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { SkipThrottle } from '@nestjs/throttler';
import { Public } from '../server/public';
import { Descriptors } from '../server/descriptors';
import { Database } from '../database/database';
import { serviceUnavailable } from '../errors/api-error';
import { RequestGate } from '../server/request-gate';

class HealthResponse {
  @ApiProperty({ enum: ['ok'], description: 'Always `ok`; other states have a status other than 200' })
  status: 'ok';
}

// Longer than any request may run: see the deadlines in server/admission.ts.
const NOT_READY_AFTER_MS = 20_000;
const NOT_LIVE_AFTER_MS = 120_000;

@ApiTags('Operations')
@Controller('health')
@SkipThrottle()
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly gate: RequestGate,
    private readonly descriptors: Descriptors,
  ) {}

  @Get('live')
  @ApiOperation({
    summary: 'Check whether the process is alive',
    description:
      'Fails if no request was admitted for two minutes although requests arrived, or if the process was short of file ' +
      'descriptors for as long. In this case, restart the process.',
  })
  @Public()
  @ApiOkResponse({ type: HealthResponse })
  live(): HealthResponse {
    if (this.descriptors.shortFor > NOT_LIVE_AFTER_MS) throw serviceUnavailable();
    return this.okUnlessStuckFor(NOT_LIVE_AFTER_MS);
  }

  @Get('ready')
  @ApiOperation({
    summary: 'Check whether the service is ready for requests',
    description:
      'Fails while the process starts or stops, if no request was admitted for 20 seconds although requests arrived, and ' +
      'while the process is short of file descriptors. ' +
      'It does not fail if the database becomes unavailable: in this case, requests return 503.',
  })
  @Public()
  @ApiOkResponse({ type: HealthResponse })
  ready(): HealthResponse {
    // `connected` stays true when the database is lost later.
    if (this.gate.isStarting || this.gate.isDraining || !this.database.connected) throw serviceUnavailable();
    if (this.descriptors.areShort) throw serviceUnavailable();
    return this.okUnlessStuckFor(NOT_READY_AFTER_MS);
  }

  private okUnlessStuckFor(ms: number): HealthResponse {
    if (this.gate.admission.requests.stuckFor > ms) throw serviceUnavailable();
    return { status: 'ok' };
  }
}
