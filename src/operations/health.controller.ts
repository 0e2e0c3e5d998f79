import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { SkipThrottle } from '@nestjs/throttler';
import { Public } from '../auth/access';
import { Database } from '../database/database';
import { serviceUnavailable } from '../http/failure';
import { FrontDoor } from '../http/front-door';

class HealthAnswer {
  @ApiProperty({ enum: ['ok'] })
  status: 'ok';
}

// No request holds a slot for so long: see the deadlines in http/in-flight.ts.
const STUCK = 20_000;
const STUCK_FOR_GOOD = 120_000;

@ApiTags('Operations')
@Controller('health')
@SkipThrottle()
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly frontDoor: FrontDoor,
  ) {}

  @Get('live')
  @ApiOperation({
    summary: 'Whether the process works',
    description: 'It fails when no request was let in for two minutes although some came: restart it then.',
  })
  @Public()
  @ApiOkResponse({ type: HealthAnswer })
  live(): HealthAnswer {
    return this.okUnlessStuckFor(STUCK_FOR_GOOD);
  }

  @Get('ready')
  @ApiOperation({
    summary: 'Whether the process can answer requests',
    description:
      'It fails while the process starts, while it stops, and when no request was let in for 20 seconds although some ' +
      'came. A database that went away does not make it fail: requests are answered with 503 then.',
  })
  @Public()
  @ApiOkResponse({ type: HealthAnswer })
  ready(): HealthAnswer {
    // Connected once the schema was found to be right, and for good.
    if (this.frontDoor.draining || !this.database.connected) throw serviceUnavailable();
    return this.okUnlessStuckFor(STUCK);
  }

  private okUnlessStuckFor(ms: number): HealthAnswer {
    if (this.frontDoor.inFlight.stuckFor > ms) throw serviceUnavailable();
    return { status: 'ok' };
  }
}
