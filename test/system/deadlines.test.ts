import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client } from 'pg';
import { RequestGate } from '../../src/platform/http/request-gate';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { Browser, browserOf, PASSWORD, withPassword } from '../support/browser';
import { databaseUrl, logged, make, openApp, sql, useStore } from '../support/store';
import { moment } from '../support/time';

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

/** Keeps everybody from a table for so long. */
async function holds(
  table: string,
  milliseconds: number,
  mode = 'ACCESS EXCLUSIVE',
): Promise<{ over: Promise<unknown> }> {
  const holder = new Client({ connectionString: databaseUrl() });
  await holder.connect();
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`);
  return { over: moment(milliseconds).then(() => holder.end()) };
}

/** A request that waits twice, each time for less than a statement may take, and in all for more than a request may. */
async function waitTwice(prepare: (app: NestExpressApplication) => void) {
  const { key } = await make.user();
  app = await openApp();
  prepare(app);
  const held = [await holds('api_keys', 1300), await holds('users', 2700)];
  const response = await ask(`${await app.getUrl()}/profile`, key!);
  for (const { over } of held) await over;
  return response;
}

describe('a request has 2.5 seconds in all, however often it waits', () => {
  test('then it gets a 503', async () => {
    const { status, ms } = await waitTwice(() => undefined);
    expect(status).toBe(503);
    expect(ms).toBeGreaterThan(2200);
  });

  test('control: without the deadline it is served once it has the second lock', async () => {
    expect(await waitTwice((app) => app.get(RequestGate).inFlight.stop())).toMatchObject({ status: 200 });
  });
});

test('a page that fails keeps what it shows once for the next time', async () => {
  const path = '/user/settings/api-keys';
  app = await openApp();
  const url = await app.getUrl();
  const browser = await browserOf(await make.user(), () => url);
  await browser.get(`${path}/new`);
  await browser.submit(path, { label: 'build server' });
  const { over } = await holds('api_keys', 2700);
  expect(await browser.get(path)).toMatchObject({ status: 503 });
  await over;
  expect((await browser.get(path)).text).toMatch(/gw_[0-9A-Za-z]{38}/);
});

test('a sign-in that comes too late leaves no session, and no error in the log', async () => {
  const user = await withPassword(await make.user());
  app = await openApp();
  const url = await app.getUrl();
  const browser = new Browser({}, () => url);
  await browser.get('/login');
  const before = logged.length;
  const held = [await holds('attempts', 1300), await holds('sessions', 2700, 'SHARE')];
  expect(await browser.submit('/login', { username: user.username, password: PASSWORD })).toMatchObject({
    status: 503,
  });
  for (const { over } of held) await over;
  // The handler goes on behind the response.
  await gracefulStop(app);
  app = undefined;
  expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toEqual([]);
  expect(
    await sql(`SELECT FROM audit_events WHERE event = 'user.signed_in' AND user_id = $1`, [user.id]),
  ).toEqual([]);
  expect(logged.slice(before).filter((line) => line.includes('"error"'))).toEqual([]);
});
