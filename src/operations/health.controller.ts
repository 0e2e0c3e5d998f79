import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { SkipThrottle } from '@nestjs/throttler';
import { Public } from '../auth/access';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { serviceUnavailable } from '../http/failure';
import { FrontDoor } from '../http/front-door';

class HealthAnswer {
  @ApiProperty({ enum: ['ok'] })
  status: 'ok';
}

const ALIVE = statement('alive', 'SELECT 1');

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
    summary: 'Whether the process answers',
    description: 'Asks nothing of the database, so that its loss does not restart every replica.',
  })
  @Public()
  @ApiOkResponse({ type: HealthAnswer })
  live(): HealthAnswer {
    return { status: 'ok' };
  }

  @Get('ready')
  @ApiOperation({
    summary: 'Whether the process can serve',
    description: 'The database answers, and the process is not stopping.',
  })
  @Public()
  @ApiOkResponse({ type: HealthAnswer })
  async ready(): Promise<HealthAnswer> {
    if (this.frontDoor.draining) throw serviceUnavailable();
    await this.database.rows(ALIVE, []);
    return { status: 'ok' };
  }
}
