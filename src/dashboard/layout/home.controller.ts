import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access';
import { ApiKeysService } from '../../auth/api-keys.service';
import { Settings } from '../../platform/config/settings';
import { OwnAddress } from '../../platform/http/own-address';
import { Demo } from './demo';
import { html, type Html } from './html';
import { Layout, type HtmlResponse } from './layout';
import { copyable } from './parts';
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
    private readonly own: OwnAddress,
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
    return this.layout.show(visitor, {
      title: 'API',
      main: html`<h1>The API of ${this.settings.STORE_NAME}</h1>
        ${visitor.user ? this.withOwnKey() : await this.forStrangers()}`,
    });
  }

  private withOwnKey(): Html {
    return html`<p class="lead">Your first request, in three steps:</p>
      <ol class="steps">
        <li>
          <p>
            <strong><a href="/user/settings/api-keys/new">Create an API key</a></strong
            >, and copy it.
          </p>
        </li>
        <li>
          <div>
            <p><strong>Request your profile</strong>, with the key instead of <code>KEY</code>:</p>
            ${copyable('first-request', 'In a terminal', `curl -H "Authorization: Bearer KEY" ${this.own.url}/profile`)}
          </div>
        </li>
        <li>${REFERENCE_LINK}</li>
      </ol>`;
  }

  private async forStrangers(): Promise<Html> {
    const demo = this.demo.access;
    const key = demo && (await this.keys.isLive(demo.api_key)) ? demo.api_key : undefined;
    return html`<p class="lead">
        This API tells games, launchers and developer tools who a player is, which games they own, and who
        bought a game. It also manages collections of games.
      </p>
      <ol class="steps">
        <li>
          <div>
            <p>
              <strong>Send a request.</strong> ${
                key
                  ? html`This one uses the key of ${demo!.username}, a developer of the demo store:`
                  : 'This one needs no key:'
              }
            </p>
            ${copyable('first-request', 'In a terminal', key ? `curl -H "Authorization: Bearer ${key}" ${this.own.url}/profile` : `curl ${this.own.url}/`)}
          </div>
        </li>
        <li>
          <p>
            <strong><a href="/user/settings/api-keys/new">Create your own API key</a></strong
            >, after you sign in.
          </p>
        </li>
        <li>${REFERENCE_LINK}</li>
      </ol>`;
  }
}

const REFERENCE_LINK = html`<p>
  <strong><a href="/docs">Read the API reference</a></strong
  >. For your tools, it is also available as <a href="/openapi.json">OpenAPI</a> and
  <a href="/llms.txt">llms.txt</a>.
</p>`;
