import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from '../../src/platform/database/database';
import { FaultyProxy } from './proxy';
import { baseUrl, databaseUrl, openApp, theApp } from './store';
import { until } from './time';

/** Counts what a replica asks the database from now on. */
export function questionsOf(app: NestExpressApplication) {
  const spy = jest.spyOn(app.get(Database), 'rows');
  return {
    named: (name: RegExp) => spy.mock.calls.filter(([statement]) => name.test(statement.name)).length,
    end: () => spy.mockRestore(),
  };
}

type Ask = (url: string) => Promise<string>;

/** Two replicas that remember answers, the second one behind a proxy that can fail. */
export class Replicas {
  proxy: FaultyProxy;
  apps: NestExpressApplication[];
  private urls: string[];

  /** `asked`: the statements that are not sent for what is remembered. */
  constructor(private readonly asked: RegExp) {
    beforeAll(async () => {
      this.proxy = await FaultyProxy.before(databaseUrl());
      const replica = await openApp({ DATABASE_URL: this.proxy.through(databaseUrl()) });
      this.apps = [theApp(), replica];
      this.urls = [baseUrl(), await replica.getUrl()];
    });
    afterAll(async () => {
      await this.apps[1]!.close();
      await this.proxy.vanish();
    });
  }

  answers(ask: Ask): Promise<string[]> {
    return Promise.all(this.urls.map(ask));
  }

  /** Both have known the answer for longer than they would without looking whether it changed. */
  async know(ask: Ask, answer: string): Promise<void> {
    const questions = this.apps.map(questionsOf);
    const asked = () => questions.reduce((sum, one) => sum + one.named(this.asked), 0);
    let [before, since] = [-1, 0];
    await until(async () => {
      expect(await this.answers(ask)).toEqual([answer, answer]);
      if (asked() !== before) [before, since] = [asked(), performance.now()];
      return performance.now() - since > 800;
    }, 10_000);
    for (const one of questions) one.end();
  }

  /** Both give the answer within a second from now. */
  async see(ask: Ask, answer: string): Promise<void> {
    const committed = performance.now();
    await until(async () => (await this.answers(ask)).every((one) => one === answer));
    expect(performance.now() - committed).toBeLessThan(1000);
  }

  /** A promoted standby may give numbers of transactions anew that the last look saw on the server before. */
  moveToAnotherServer(): void {
    for (const database of this.apps.map((app) => app.get(Database))) {
      const row = database.row.bind(database);
      jest
        .spyOn(database, 'row')
        .mockImplementation(
          async (...asked) => ({ ...((await row(...asked)) as object), server: 'another' }) as never,
        );
    }
  }
}

/** What was swept meanwhile is not known. */
export function sixMinutesLater(): void {
  const now = Date.now.bind(Date);
  jest.spyOn(Date, 'now').mockImplementation(() => now() + 6 * 60_000);
}

const realNow = performance.now.bind(performance);

/** By how much `performance.now()` is ahead from now on, in tests of what happens after minutes. */
export function elapse(milliseconds: number): void {
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() + milliseconds);
}
