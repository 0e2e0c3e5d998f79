import type { NestExpressApplication } from '@nestjs/platform-express';
import { FaultyProxy } from './proxy';
import { baseUrl, databaseUrl, openApp, theApp, theClock } from './app';

type Ask = (url: string) => Promise<string>;

/** Two replicas that cache responses, the second one behind a proxy that can fail. */
export class Replicas {
  proxy: FaultyProxy;
  apps: NestExpressApplication[];
  private urls: string[];

  constructor() {
    beforeAll(async () => {
      this.proxy = await FaultyProxy.before(databaseUrl());
      const replica = await openApp({ DATABASE_URL: this.proxy.through(databaseUrl()) });
      this.apps = [theApp(), replica];
      this.urls = [baseUrl(), await replica.getUrl()];
    });
    beforeEach(() => theClock().stop());
    afterAll(async () => {
      await this.apps[1]!.close();
      await this.proxy.vanish();
    });
  }

  responses(ask: Ask): Promise<string[]> {
    return Promise.all(this.urls.map(ask));
  }
}
