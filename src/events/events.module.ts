import { type DynamicModule, Module } from '@nestjs/common';
import type { EventType } from './event-type';
import { Events } from './events';

@Module({ providers: [Events], exports: [Events] })
class EventTypesModule {}

@Module({ imports: [EventTypesModule], exports: [EventTypesModule] })
export class EventsModule {
  /** Registers the events that the module of a feature announces. */
  static forFeature(types: readonly EventType[]): DynamicModule {
    const register = (events: Events) => events.register(types);
    const provide = `event types ${types.map(({ name }) => name).join(' ')}`;
    return { module: EventsModule, providers: [{ provide, useFactory: register, inject: [Events] }] };
  }
}
