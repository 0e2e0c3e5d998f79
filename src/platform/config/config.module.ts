import { type DynamicModule, Module } from '@nestjs/common';
import { Clock } from './clock';
import { Settings } from './settings';
import { StoreLinks } from './store-links';

@Module({})
export class ConfigModule {
  static with(settings: Settings): DynamicModule {
    return {
      module: ConfigModule,
      global: true,
      providers: [{ provide: Settings, useValue: settings }, StoreLinks, Clock],
      exports: [Settings, StoreLinks, Clock],
    };
  }
}
