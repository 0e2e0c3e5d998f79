import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { homePath, type HtmlResponse, seeOther } from '../layout/layout';
import { Visitors } from '../layout/visitors';
import { SETUP_PATH } from './setup.page';
import { SetupService } from '../../auth/sign-in/setup.service';

class WelcomeResponse {
  @ApiProperty({ example: 'gamewharf', description: 'Name of the service' })
  name: string;

  @ApiProperty({ description: 'Path of the OpenAPI document', example: '/openapi.json' })
  openapi: string;
}

@ApiTags('Operations')
@Controller()
export class HomeController {
  constructor(
    private readonly visitors: Visitors,
    private readonly setup: SetupService,
  ) {}

  /** Redirects a browser to its user's start page. */
  @Get()
  @ApiOperation({ summary: 'Get the name of the service' })
  @Public()
  @ApiOkResponse({ type: WelcomeResponse })
  async home(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
  ): Promise<WelcomeResponse | HtmlResponse> {
    res.setHeader('Vary', 'Accept');
    if (req.accepts('json', 'html') !== 'html') return { name: 'gamewharf', openapi: '/openapi.json' };
    const { user } = await this.visitors.of(req, res);
    if (user === undefined && (await this.setup.isOpen())) return seeOther(SETUP_PATH);
    return seeOther(homePath(user));
  }
}
