import type { LimitedClient } from './concurrency-limit';

/** Clients of a limit that are known by a key, such as the ID of a user, as long as they have work. */
export class ClientsByKey<Key> {
  private readonly clients = new Map<Key, { client: LimitedClient; work: number }>();

  async with<Result>(key: Key, work: (client: LimitedClient) => Promise<Result>): Promise<Result> {
    const found = this.clients.get(key) ?? { client: { queues: new Map() }, work: 0 };
    this.clients.set(key, found);
    found.work++;
    try {
      return await work(found.client);
    } finally {
      if (--found.work === 0) this.clients.delete(key);
    }
  }
}
