import { Injectable } from '@nestjs/common';
import type { EventType } from './event-type';

/** The event types of all modules. */
@Injectable()
export class Events {
  private readonly types = new Map<string, EventType>();
  private readonly listeners: (() => void)[] = [];

  register(types: readonly EventType[]): void {
    for (const type of types) {
      if (this.types.has(type.name)) throw new Error(`Two event types are named ${type.name}.`);
      this.types.set(type.name, type);
    }
  }

  find(name: string): EventType | undefined {
    return this.types.get(name);
  }

  /** Sorted by name. */
  get all(): EventType[] {
    return [...this.types.values()].toSorted((a, b) => a.name.localeCompare(b.name, 'en'));
  }

  /** The events that users may select, and that a webhook without a list of events receives. */
  get forEditors(): EventType[] {
    return this.all.filter(({ audience }) => audience === 'editors');
  }

  /** Call it after the commit of a transaction with an announcement. */
  announced(): void {
    for (const listener of this.listeners) listener();
  }

  onAnnounced(listener: () => void): void {
    this.listeners.push(listener);
  }
}
