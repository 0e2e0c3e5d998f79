import type { NestExpressApplication } from '@nestjs/platform-express';
import { ApiPaths } from './api-paths';
import { MockTraffic } from './mock-traffic';

/** Adds what runs before the service's own middleware. */
export function interceptTraffic(app: NestExpressApplication): void {
  app.get(ApiPaths).read(app);
  app.use(app.get(MockTraffic).handle);
}
