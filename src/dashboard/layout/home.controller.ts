import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import { Demo } from './demo';
import { homePage } from './home.page';
import { Layout, type HtmlResponse } from './layout';
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
  constructor(
    private readonly layout: Layout,
    private readonly visitors: Visitors,
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
    private readonly demo: Demo,
    private readonly keys: ApiKeysService,
  ) {}

  /** A browser gets a page that shows how to make the first request. */
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
    const visitor = await this.visitors.of(req, res);
    const demo = this.demo.access;
    const isLive = demo && !visitor.user && (await this.keys.isLive(demo.api_key));
    const page = homePage(
      this.settings.STORE_NAME,
      this.service.url,
      !visitor.user,
      isLive ? demo : undefined,
    );
    return this.layout.show(visitor, page);
  }
}
