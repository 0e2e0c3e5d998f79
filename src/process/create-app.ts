import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import { AppModule } from '../app.module';
import { addressRangesOf } from '../config/address-ranges';
import type { Settings } from '../config/settings';
import { GamewharfAdapter } from '../http/express.adapter';
import { FrontDoor } from '../http/front-door';
import { NestLogger } from '../http/logger';
import { ApiDescription } from '../operations/api-description';
import { legacyOnlyUnder } from '../legacy/legacy-host';
import { lenientClients } from '../legacy/lenient-clients';

/** The application as it is served, and as the tests speak to it. */
export async function createApp(settings: Settings, logger: Logger): Promise<NestExpressApplication> {
  const frontDoor = new FrontDoor(settings, logger);
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.with(settings, frontDoor),
    new GamewharfAdapter(frontDoor, addressRangesOf(settings.TRUSTED_PROXIES)),
    { logger: new NestLogger(logger), bodyParser: false, abortOnError: false },
  );
  app.get(ApiDescription).describes(app);
  if (settings.LEGACY_HOST) app.use(legacyOnlyUnder(settings.LEGACY_HOST));
  if (settings.LENIENT_CLIENTS) app.use(lenientClients);
  return app;
}
