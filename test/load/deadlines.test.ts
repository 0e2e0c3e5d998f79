import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client } from 'pg';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { signInBrowser } from '../support/browser';
import { databaseUrl, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sleep } from '../support/time';

useStore();

let app: NestExpressApplication | undefined;
afterEach(async () => {
  if (app) await gracefulStop(app);
  app = undefined;
});

/** Locks a table for this long. */
async function lockTable(table: string, milliseconds: number): Promise<{ over: Promise<unknown> }> {
  const holder = new Client({ connectionString: databaseUrl() });
  await holder.connect();
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  return { over: sleep(milliseconds).then(() => holder.end()) };
}

test('keeps one-time messages for the next page if a page fails', async () => {
  const path = '/user/settings/api-keys';
  app = await openApp();
  const url = await app.getUrl();
  const browser = await signInBrowser(await make.user(), () => url);
  await browser.get(`${path}/new`);
  await browser.submit(path, { label: 'build server' });
  const { over } = await lockTable('api_keys', 2700);
  expect(await browser.get(path)).toMatchObject({ status: 503 });
  await over;
  expect((await browser.get(path)).text).toMatch(/gw_[0-9A-Za-z]{38}/);
});
