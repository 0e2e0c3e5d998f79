import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Controller, Get, Module } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Public } from '../../src/auth/access/access';
import { RequestGate } from '../../src/platform/server/request-gate';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { Browser, signInBrowser, PASSWORD, withPassword } from '../support/browser';
import { holdLocks, untilBlocked } from '../support/locks';
import { logged, openApp, theClock, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

let app: NestExpressApplication | undefined;
afterEach(async () => {
  if (app) await gracefulStop(app);
  app = undefined;
});

/** The deadlines of requests are checked every 100 ms. */
function advance(milliseconds: number): void {
  theClock().advance(milliseconds);
  app!.get(RequestGate).admission['sweep']();
}

test.each([
  [1149, 200],
  [1150, 503],
])('a request that waits twice for %i ms gets %i', async (milliseconds, status) => {
  const { headers } = await make.user();
  app = await openApp();
  theClock().stop();
  const locks = [await holdLocks('LOCK TABLE api_keys'), await holdLocks('LOCK TABLE users')];
  const response = fetch(`${await app.getUrl()}/profile`, { headers });
  for (const lock of locks) {
    await untilBlocked();
    advance(milliseconds);
    await lock.release();
  }
  expect(await response).toMatchObject({ status });
});

test('a page past the deadline leaves the one-time message for the next page', async () => {
  const path = '/user/settings/api-keys';
  app = await openApp();
  const url = await app.getUrl();
  const browser = await signInBrowser(await make.user(), () => url);
  await browser.get(`${path}/new`);
  await browser.submit(path, { label: 'build server' });
  const lock = await holdLocks('LOCK TABLE api_keys');
  const page = browser.get(path);
  await untilBlocked();
  advance(2500);
  expect(await page).toMatchObject({ status: 503 });
  await lock.release();
  // The handler continues, and needs fewer statements than the next page.
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
  advance(2500);
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

@Controller()
class HangingController {
  @Public()
  @Get('hangs')
  hang(): Promise<never> {
    return new Promise(() => undefined);
  }
}

@Module({ controllers: [HangingController] })
class HangingModule {}

test('a request of a lost client stops counting past the deadline, even if its handler never ends', async () => {
  app = await openApp({}, { imports: [HangingModule] });
  theClock().stop();
  const { admission } = app.get(RequestGate);
  const { port } = app.getHttpServer().address() as AddressInfo;
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  client.write('GET /hangs HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await until(() => admission.requests.running === 1);
  client.resetAndDestroy();
  await until(() => admission.count === 0);
  advance(2299);
  expect(admission.requests.running).toBe(1);
  advance(1);
  await until(() => admission.requests.running === 0);
});

test('closes the connection of a body that does not arrive after its early response', async () => {
  app = await openApp();
  theClock().stop();
  const { uploads } = app.get(RequestGate).admission;
  const { port } = app.getHttpServer().address() as AddressInfo;
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  client.write('POST /collections HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx');
  const [response] = (await once(client, 'data')) as [Buffer];
  expect(response.toString()).toMatch(/^HTTP\/1.1 401 /);
  client.resume();
  const closed = once(client, 'close');
  advance(7999);
  expect(uploads.used).toBeGreaterThan(0);
  advance(1);
  await closed;
  await until(() => uploads.used === 0);
});
