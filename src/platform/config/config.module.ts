import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import type { Logger } from 'pino';
import { Clock } from './clock';
import { Settings } from './settings';
import { StoreLinks } from './store-links';

/** The logger of the process, to be injected. */
export const LOGGER = Symbol('logger');

@Module({})
export class ConfigModule {
  static with(settings: Settings, logger: Logger): DynamicModule {
    return ConfigModule.providing(
      { provide: Settings, useValue: settings },
      { provide: LOGGER, useValue: logger },
    );
  }

  static providing(...given: Provider[]): DynamicModule {
    const providers = [...given, StoreLinks, Clock];
    return { module: ConfigModule, global: true, providers, exports: providers };
  }
}
