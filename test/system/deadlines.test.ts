import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client } from 'pg';
import { RequestGate } from '../../src/platform/http/request-gate';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { Browser, browserOf, PASSWORD, withPassword } from '../support/browser';
import { holdLocks, untilBlocked } from '../support/locks';
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
async function lockTable(table: string, milliseconds: number): Promise<{ over: Promise<unknown> }> {
  const holder = new Client({ connectionString: databaseUrl() });
  await holder.connect();
  await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  return { over: sleep(milliseconds).then(() => holder.end()) };
}

describe('limits a request to 2.5 seconds in total, however often it waits', () => {
  test('returns 503 after the deadline', async () => {
    const { key } = await make.user();
    app = await openApp();
    // Each below the timeout of a statement.
    const held = [await lockTable('api_keys', 1300), await lockTable('users', 2700)];
    const { status, ms } = await ask(`${await app.getUrl()}/profile`, key!);
    for (const { over } of held) await over;
    expect(status).toBe(503);
    expect(ms).toBeGreaterThan(2200);
  });

  test.each([
    [1000, 200],
    [2500, 503],
  ])('if it has waited for %i ms, the status is %i', async (milliseconds, status) => {
    const { key } = await make.user();
    app = await openApp();
    const locks = [await holdLocks('LOCK TABLE api_keys'), await holdLocks('LOCK TABLE users')];
    const response = ask(`${await app.getUrl()}/profile`, key!);
    for (const lock of locks) {
      await untilBlocked();
      app.get(RequestGate).inFlight['sweep'](performance.now() + milliseconds);
      await lock.release();
    }
    expect(await response).toMatchObject({ status });
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
  const locks = await holdLocks('LOCK TABLE sessions IN SHARE MODE');
  const response = browser.submit('/login', { username: user.username, password: PASSWORD });
  await untilBlocked();
  app.get(RequestGate).inFlight['sweep'](performance.now() + 2500);
  expect(await response).toMatchObject({ status: 503 });
  await locks.release();
  // The handler continues after the response.
  await gracefulStop(app);
  app = undefined;
  expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toEqual([]);
  expect(
    await sql(`SELECT FROM audit_events WHERE event = 'user.signed_in' AND user_id = $1`, [user.id]),
  ).toEqual([]);
  expect(logged.slice(before).filter((line) => line.includes('"error"'))).toEqual([]);
});
