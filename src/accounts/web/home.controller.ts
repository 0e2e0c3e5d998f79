import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access';
import { Settings } from '../../config/settings';
import { OwnAddress } from '../../http/own-address';
import { html } from './html';
import { Layout, type PageAnswer } from './layout';
import { copyable } from './parts';
import { Visitors } from './visitors';

class WelcomeAnswer {
  @ApiProperty({ example: 'gamewharf' })
  name: string;

  @ApiProperty({ description: 'Where the description of this API is', example: '/openapi.json' })
  openapi: string;
}

@ApiTags('Operations')
@Controller()
export class HomeController {
  constructor(
    private readonly layout: Layout,
    private readonly visitors: Visitors,
    private readonly settings: Settings,
    private readonly own: OwnAddress,
  ) {}

  /** Says what answers here; to a browser, how to make the first request. */
  @Get()
  @Public()
  @ApiOkResponse({ type: WelcomeAnswer })
  async home(
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
  ): Promise<WelcomeAnswer | PageAnswer> {
    res.setHeader('Vary', 'Accept');
    if (req.accepts('json', 'html') !== 'html') return { name: 'gamewharf', openapi: '/openapi.json' };
    const visitor = await this.visitors.of(req, res);
    return this.layout.show(visitor, {
      title: 'API',
      main: html`<h1>The API of ${this.settings.STORE_NAME}</h1>
        <p class="lead">Your first request, in three steps:</p>
        <ol class="steps">
          <li>
            <p>
              <strong><a href="/user/settings/api-keys">Make a key</a></strong
              >${!visitor.user && ' after signing in'}, and copy it.
            </p>
          </li>
          <li>
            <div>
              <p><strong>Ask who you are</strong>, with the key in place of <code>KEY</code>:</p>
              ${copyable('first-request', 'In a terminal', `curl -H "Authorization: Bearer KEY" ${this.own.url}/profile`)}
            </div>
          </li>
          <li>
            <p>
              <strong><a href="/docs">Read the reference</a></strong> for all the rest, or give
              <a href="/openapi.json">its description</a> to your tools.
            </p>
          </li>
        </ol>`,
    });
  }
}
