import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client } from 'pg';
import { RequestGate } from '../../src/platform/http/request-gate';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { Browser, browserOf, PASSWORD, withPassword } from '../support/browser';
import { databaseUrl, logged, make, openApp, sql, useStore } from '../support/store';
import { sleep } from '../support/time';

useStore();

let app: NestExpressApplication | undefined;
afterEach(async () => {
  if (app) await gracefulStop(app);
  app = undefined;
});

async function ask(url: string, key: string) {
  const started = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return { status: response.status, ms: performance.now() - started };
}

/** Locks a table for this long. */
async function lockTable(
  table: string,
  milliseconds: number,
  mode = 'ACCESS EXCLUSIVE',
): Promise<{ over: Promise<unknown> }> {
  const holder = new Client({ connectionString: databaseUrl() });
  await holder.connect();
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`);
  return { over: sleep(milliseconds).then(() => holder.end()) };
}

/** A request that waits twice, each time below the statement timeout but in total beyond the request deadline. */
async function waitTwice(prepare: (app: NestExpressApplication) => void) {
  const { key } = await make.user();
  app = await openApp();
  prepare(app);
  const held = [await lockTable('api_keys', 1300), await lockTable('users', 2700)];
  const response = await ask(`${await app.getUrl()}/profile`, key!);
  for (const { over } of held) await over;
  return response;
}

describe('limits a request to 2.5 seconds in total, however often it waits', () => {
  test('returns 503 after the deadline', async () => {
    const { status, ms } = await waitTwice(() => undefined);
    expect(status).toBe(503);
    expect(ms).toBeGreaterThan(2200);
  });

  test('control: without the deadline it succeeds after the second lock', async () => {
    expect(await waitTwice((app) => app.get(RequestGate).inFlight.stop())).toMatchObject({ status: 200 });
  });
});

test('keeps one-time messages for the next page if a page fails', async () => {
  const path = '/user/settings/api-keys';
  app = await openApp();
  const url = await app.getUrl();
  const browser = await browserOf(await make.user(), () => url);
  await browser.get(`${path}/new`);
  await browser.submit(path, { label: 'build server' });
  const { over } = await lockTable('api_keys', 2700);
  expect(await browser.get(path)).toMatchObject({ status: 503 });
  await over;
  expect((await browser.get(path)).text).toMatch(/gw_[0-9A-Za-z]{38}/);
});

test('leaves no session and logs no error for a sign-in past the deadline', async () => {
  const user = await withPassword(await make.user());
  app = await openApp();
  const url = await app.getUrl();
  const browser = new Browser({}, () => url);
  await browser.get('/login');
  const before = logged.length;
  const held = [await lockTable('attempts', 1300), await lockTable('sessions', 2700, 'SHARE')];
  expect(await browser.submit('/login', { username: user.username, password: PASSWORD })).toMatchObject({
    status: 503,
  });
  for (const { over } of held) await over;
  // The handler continues after the response.
  await gracefulStop(app);
  app = undefined;
  expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toEqual([]);
  expect(
    await sql(`SELECT FROM audit_events WHERE event = 'user.signed_in' AND user_id = $1`, [user.id]),
  ).toEqual([]);
  expect(logged.slice(before).filter((line) => line.includes('"error"'))).toEqual([]);
});
