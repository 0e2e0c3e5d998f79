import { SetupService } from '../../src/auth/sign-in/setup.service';
import { lengthenWaits } from '../support/attempts';
import { Browser, PASSWORD } from '../support/browser';
import { logged, openApp, theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore({ DEMO_DATA: 'false' });

const code = () => theApp().get(SetupService).code();
const fields = async (more: object = {}) => ({
  code: await code(),
  username: 'captain',
  email: 'Captain@example.com',
  password: PASSWORD,
  ...more,
});
const open = async () => {
  const browser = new Browser();
  await browser.get('/setup');
  return browser;
};
beforeAll(lengthenWaits);
afterEach(() => sql('DELETE FROM attempts'));

test('the code has 12 letters and digits in groups of four, the same on each replica', async () => {
  expect(await code()).toMatch(/^[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}$/);
  expect(await (await openApp({ DEMO_DATA: 'false' })).get(SetupService).code()).toBe(await code());
  const pepper = 'another pepper, which is long enough';
  const other = await openApp({ DEMO_DATA: 'false', API_KEY_PEPPER: pepper });
  expect(await other.get(SetupService).code()).not.toBe(await code());
});

test('the start page leads there until the first account exists', async () => {
  const browser = new Browser();
  expect((await browser.get('/')).location).toBe('/setup');
  expect((await browser.get('/', { accept: 'application/json' })).status).toBe(200);
});

test('exists neither in a demo store nor if passwords are not accepted', async () => {
  const provider = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET: 'x' };
  for (const environment of [
    { DEMO_DATA: 'true' },
    { DEMO_DATA: 'false', ...provider, OIDC_ONLY: 'true' },
    { DEMO_DATA: 'false', TRUSTED_IDENTITY_HEADER: 'X-User', TRUSTED_PROXIES: '10.0.0.0/8' },
  ]) {
    const app = await openApp(environment);
    const base = await app.getUrl();
    expect((await new Browser({}, () => base).get('/setup')).status).toBe(404);
  }
});

test('says what is wrong, and creates nothing', async () => {
  const browser = await open();
  expect(browser.page.headers.get('content-security-policy')).toContain(`default-src 'none'`);
  for (const [more, status, words] of [
    [{ code: 'AAAA-BBBB-CCCC' }, 403, 'The setup code is incorrect.'],
    [{ code: '' }, 403, 'The setup code is incorrect.'],
    [{ username: 'no spaces' }, 400, '1 to 63 letters'],
    [{ username: 'erased-1' }, 400, 'reserved'],
    [{ email: 'nobody' }, 400, 'Enter an email address.'],
    [{ email: 'nobody@erased.invalid' }, 400, 'Enter an email address.'],
    [{ password: 'short' }, 400, 'at least 8'],
  ] as const) {
    await browser.submit('/setup', await fields(more));
    expect([browser.page.status, browser.words]).toEqual([status, expect.stringContaining(words)]);
    // The form keeps its entries, except for the password.
    expect(browser.page.text).not.toContain(PASSWORD);
  }
  expect(await sql('SELECT FROM users')).toEqual([]);
});

test('limits wrong codes like passwords', async () => {
  const browser = await open();
  const statuses = [];
  for (let i = 0; i < 7; i++)
    statuses.push((await browser.submit('/setup', await fields({ code: 'wrong' }))).status);
  expect(statuses).toEqual([403, 403, 403, 403, 403, 429, 429]);
  expect(browser.page.headers.get('retry-after')).toMatch(/^\d+$/);
  // The right code waits, too.
  expect((await browser.submit('/setup', await fields())).status).toBe(429);
});

test('works once, and for one of several requests', async () => {
  const browsers = await Promise.all([open(), open(), open()]);
  const typed = (await code()).toLowerCase().replaceAll('-', ' ');
  const pages = await Promise.all(
    browsers.map(async (browser, i) =>
      browser.submit('/setup', await fields({ username: `captain-${i}`, code: typed })),
    ),
  );
  // Concurrent attempts wait for each other.
  expect(pages.filter(({ status }) => status === 303)).toHaveLength(1);
  for (const { status } of pages) expect([303, 404, 429]).toContain(status);
  const users = await sql<{ id: number }>('SELECT id, developer FROM users');
  expect(users).toEqual([{ id: expect.any(Number) as number, developer: true }]);
  expect(await sql('SELECT user_id, email, verified, is_primary FROM user_emails')).toEqual([
    { user_id: users[0]!.id, email: 'captain@example.com', verified: true, is_primary: true },
  ]);
  const first = browsers.find(({ page }) => page.status === 303)!;
  expect(first.page.location).toBe('/user/settings/games');
  expect((await first.follow()).text).toContain('New game');
  for (const browser of browsers) expect((await browser.get('/setup')).status).toBe(404);
  expect(logged.join()).toContain('"event":"user.created"');
  expect(logged.join()).not.toContain(PASSWORD);
  expect((await new Browser().signIn('captain@example.com')).status).toBe(303);
});

test('does not exist in a store with an account', async () => {
  await make.user();
  expect((await open()).page.status).toBe(404);
  expect((await new Browser().get('/')).location).toBe('/login');
});

test('a used code is not valid again after all accounts were deleted', async () => {
  await sql('DELETE FROM users');
  const used = await code();
  const browser = await open();
  expect((await browser.submit('/setup', await fields({ username: 'first' }))).status).toBe(303);
  await sql('DELETE FROM users');
  const later = await open();
  expect((await later.submit('/setup', await fields({ code: used }))).status).toBe(403);
  expect((await later.submit('/setup', await fields())).status).toBe(303);
});
