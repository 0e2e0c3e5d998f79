import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import { Demo } from './demo';
import { homePage } from './home.page';
import { DEVELOPERS_PATH, homePath, type HtmlResponse, seeOther } from './layout';
import { ForBrowsers, Pages } from './page';
import { CurrentVisitor, Visitor } from './visitor';
import { Visitors } from './visitors';

class WelcomeResponse {
  @ApiProperty({ example: 'gamewharf', description: 'Name of the service' })
  name: string;

  @ApiProperty({ description: 'Path of the OpenAPI document', example: '/openapi.json' })
  openapi: string;
}

@ApiTags('Operations')
@Controller()
export class HomeController {
  constructor(private readonly visitors: Visitors) {}

  /** A browser gets the page that its user opens the service for. */
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
    return seeOther(homePath(user));
  }
}

/** How to send the first request. */
@Pages()
@Controller(DEVELOPERS_PATH)
export class DevelopersController {
  constructor(
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
    private readonly demo: Demo,
    private readonly keys: ApiKeysService,
  ) {}

  @Get()
  @Public()
  @ForBrowsers()
  async show(@CurrentVisitor() visitor: Visitor) {
    const demo = this.demo.access;
    const isLive = demo && !visitor.user && (await this.keys.isLive(demo.api_key));
    return homePage(this.settings.STORE_NAME, this.service.url, !visitor.user, isLive ? demo : undefined);
  }
}
