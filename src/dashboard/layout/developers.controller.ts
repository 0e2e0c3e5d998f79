import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/access/access';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import { Demo } from './demo';
import { homePage } from './home.page';
import { DEVELOPERS_PATH } from './layout';
import { ForBrowsers, Pages } from './page';
import { CurrentVisitor, Visitor } from './visitor';

/** The page that describes how to send a first request to the API. */
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
