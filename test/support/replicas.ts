import type { Type } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { ChangePoller } from '../../src/platform/cache/change-poller';
import { Database } from '../../src/platform/database/database';
import { FaultyProxy } from './proxy';
import { statementsOf } from './statements';
import { baseUrl, databaseUrl, openApp, theApp, theClock } from './store';

/** Counts the statements that a replica sends from now on. */
export function countStatements(app: NestExpressApplication) {
  const spy = jest.spyOn(app.get(Database), 'rows');
  return {
    named: (name: RegExp) => spy.mock.calls.filter(([statement]) => name.test(statement.name)).length,
    stop: () => spy.mockRestore(),
  };
}

type Ask = (url: string) => Promise<string>;

/** Two replicas that cache responses, the second one behind a proxy that can fail. They poll only when a test tells them to. */
export class Replicas {
  proxy: FaultyProxy;
  apps: NestExpressApplication[];
  private urls: string[];

  constructor(private readonly poller: Type<ChangePoller>) {
    beforeAll(async () => {
      this.proxy = await FaultyProxy.before(databaseUrl());
      const replica = await openApp({ DATABASE_URL: this.proxy.through(databaseUrl()) });
      this.apps = [theApp(), replica];
      this.urls = [baseUrl(), await replica.getUrl()];
      for (const poller of this.pollers) poller.stopPolling();
    });
    beforeEach(() => theClock().stop());
    afterAll(async () => {
      for (const poller of this.pollers) poller.startPolling();
      await this.apps[1]!.close();
      await this.proxy.vanish();
    });
  }

  get pollers(): ChangePoller[] {
    return this.apps.map((app) => app.get(this.poller));
  }

  responses(ask: Ask): Promise<string[]> {
    return Promise.all(this.urls.map(ask));
  }

  async poll(): Promise<void> {
    await Promise.all(this.pollers.map((poller) => poller.poll()));
  }

  /** Both cached the response so long ago that it is fresh only because the polls since then found no change. */
  async cache(ask: Ask, response: string): Promise<void> {
    // Polling starts when a cached response is requested.
    for (let i = 0; i < 2; i++) expect(await this.responses(ask)).toEqual([response, response]);
    await this.poll();
    // Values read before the first poll aren't covered by the polls.
    theClock().advance(700);
    await this.poll();
    expect(await this.responses(ask)).toEqual([response, response]);
    for (let i = 0; i < 3; i++) {
      theClock().advance(500);
      await this.poll();
    }
    for (const app of this.apps)
      expect(
        await statementsOf(async () => expect(await this.responses(ask)).toEqual([response, response]), app),
      ).toEqual([]);
  }

  /** Both give the response after their next poll. */
  async expectAfterPoll(ask: Ask, response: string): Promise<void> {
    await this.poll();
    expect(await this.responses(ask)).toEqual([response, response]);
  }

  /** A promoted standby may reuse transaction IDs that the last poll saw on the previous primary. */
  moveToAnotherServer(): void {
    for (const database of this.apps.map((app) => app.get(Database))) {
      const row = database.row.bind(database);
      jest
        .spyOn(database, 'row')
        .mockImplementation(
          async (...args) => ({ ...((await row(...args)) as object), server: 'another' }) as never,
        );
    }
  }
}
