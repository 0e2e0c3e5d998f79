import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import type { Logger } from 'pino';
import { Clock } from './clock';
import { Settings } from './settings';
import { StoreLinks } from './store-links';

/** The logger of the process, to be injected. */
export const LOGGER = Symbol('logger');

@Module({})
export class SettingsModule {
  static with(settings: Settings, logger: Logger): DynamicModule {
    return SettingsModule.providing(
      { provide: Settings, useValue: settings },
      { provide: LOGGER, useValue: logger },
    );
  }

  static providing(...overrides: Provider[]): DynamicModule {
    const providers = [...overrides, StoreLinks, Clock];
    return { module: SettingsModule, global: true, providers, exports: providers };
  }
}
