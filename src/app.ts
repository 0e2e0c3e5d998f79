import type { NestApplicationOptions } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import { AppModule } from './app.module';
import { readCredential } from './auth/access/credential';
import { keysOfDownloads } from './auth/access/key-in-query';
import { parseAddressRanges } from './platform/config/address-ranges';
import { Settings } from './platform/config/settings';
import { GamewharfAdapter } from './platform/server/express.adapter';
import { OPERATOR_PATH } from './platform/server/routes';
import { RequestGate } from './platform/server/request-gate';
import { NestLogger } from './platform/observability/logger';
import { ApiDescription } from './platform/openapi/api-description';
import { legacyOnlyUnder } from './legacy/legacy-host';
import { OperatorPathsMiddleware } from './operator/tokens/operator-paths.middleware';
import { lenientClients } from './legacy/lenient-clients';

export async function createApp(settings: Settings, logger: Logger): Promise<NestExpressApplication> {
  return configured(
    await NestFactory.create<NestExpressApplication>(
      AppModule.with(settings, logger),
      adapterFor(settings),
      optionsWith(logger),
    ),
  );
}

export const adapterFor = ({ TRUSTED_PROXIES }: Settings) =>
  new GamewharfAdapter(parseAddressRanges(TRUSTED_PROXIES));

export const optionsWith = (logger: Logger): NestApplicationOptions => ({
  logger: new NestLogger(logger),
  bodyParser: false,
  abortOnError: false,
});

/**
 * Configures an app, including those of @nestjs/testing. Its middleware runs in this order, before all
 * guards; `before` can add middleware that runs first.
 */
export function configured(
  app: NestExpressApplication,
  before: (app: NestExpressApplication) => void = () => undefined,
): NestExpressApplication {
  const { LEGACY_HOST, LENIENT_CLIENTS } = app.get(Settings);
  app.get<HttpAdapterHost<GamewharfAdapter>>(HttpAdapterHost).httpAdapter.serve(app.get(RequestGate));
  app.get(ApiDescription).describes(app);
  before(app);
  if (LEGACY_HOST) app.use(legacyOnlyUnder(LEGACY_HOST));
  app.use(LENIENT_CLIENTS ? lenientClients : keysOfDownloads);
  app.use(readCredential);
  const operatorPaths = app.get(OperatorPathsMiddleware);
  app.use(OPERATOR_PATH, operatorPaths.use.bind(operatorPaths));
  return app;
}
