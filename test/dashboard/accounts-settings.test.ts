import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExpiredRows } from '../../src/platform/database/expired-rows';
import { Browser, signInBrowser, PASSWORD, withPassword } from '../support/browser';
import { type Actor } from '../support/actor';
import { type Environment, openApp, theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore({ RATE_LIMIT: 'off' });

const KEYS = '/user/settings/api-keys';

/** Another replica on the same database, with other settings. */
async function replica(environment: Environment): Promise<() => string> {
  const [row] = await sql<{ name: string }>('SELECT current_database() AS name');
  const server = new URL(process.env.TEST_SERVER_URL!);
  server.pathname = `/${row!.name}`;
  const app = await openApp({ DATABASE_URL: server.href, RATE_LIMIT: 'off', ...environment });
  const url = await app.getUrl();
  return () => url;
}

test('a session with a short idle time stays signed in while it is used', async () => {
  const base = await replica({ SESSION_IDLE_MINUTES: '1' });
  const user = await make.user();
  const browser = new Browser({}, base);
  for (const cookie of (await signInBrowser(user)).cookies) browser.cookies.set(...cookie);
  const lastUse = (seconds: number) =>
    sql(`UPDATE sessions SET seen_at = seen_at - make_interval(secs => $2) WHERE user_id = $1`, [
      user.id,
      seconds,
    ]);
  for (let use = 0; use < 3; use++) {
    await lastUse(30);
    expect((await browser.get(KEYS)).status).toBe(200);
  }
  await lastUse(61);
  expect((await browser.get(KEYS)).status).toBe(303);
});

describe('over HTTPS', () => {
  let base: () => string;
  beforeAll(async () => {
    base = await replica({ PUBLIC_URL: 'https://api.store.example/' });
  });

  test('sets a host-bound, secure cookie', async () => {
    const user = await withPassword(await make.user());
    const { headers } = await new Browser({}, base).signIn(user.username);
    expect(headers.get('set-cookie')).toMatch(
      /^__Host-gamewharf_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=\d+$/,
    );
    expect(headers.get('strict-transport-security')).toContain('max-age=');
  });

  test('accepts the Origin header of an old browser and rejects another origin', async () => {
    const browser = new Browser({}, base);
    await browser.get('/login');
    const fields = { ...browser.formFields('/login'), username: 'nobody', password: 'x' };
    const post = (origin: string) =>
      fetch(`${base()}/login`, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          origin,
          accept: 'text/html',
          cookie: [...browser.cookies].map((pair) => pair.join('=')).join(';'),
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams(fields).toString(),
      });
    expect(await (await post('https://api.store.example')).text()).toContain(
      'The username or password is incorrect.',
    );
    for (const origin of ['https://evil.example', 'null', 'https://api.store.example.evil.example'])
      expect(await (await post(origin)).text()).toContain(
        'This form has expired or was sent from another site',
      );
  });

  test('public URLs', async () => {
    const response = await fetch(`${base()}/.well-known/oauth-authorization-server`);
    expect(await response.json()).toMatchObject({
      issuer: 'https://api.store.example',
      token_endpoint: 'https://api.store.example/oauth/token',
    });
  });
});

describe('branding', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gamewharf-look-'));
    writeFileSync(join(folder, 'our look.css'), ':root { --accent: #7a1fa2 }');
    writeFileSync(join(folder, 'logo.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('shows the name, logo and style of the store, from the same host', async () => {
    const base = await replica({
      STORE_NAME: 'Harbour & Co',
      STORE_CSS_FILE: join(folder, 'our look.css'),
      STORE_LOGO_FILE: join(folder, 'logo.svg'),
    });
    const { text } = await new Browser({}, base).get('/login');
    expect(text).toContain('<title>Sign in · Harbour &amp; Co</title>');
    const [, style] = /href="(\/assets\/ourlook-[0-9a-f]{12}\.css)"/.exec(text)!;
    const [, logo] = /src="(\/assets\/logo-[0-9a-f]{12}\.svg)"/.exec(text)!;
    const response = await fetch(base() + style);
    expect(response.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect(await response.text()).toContain('--accent');
    const image = await fetch(base() + logo);
    expect(image.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
    expect(image.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(text.indexOf('pages-')).toBeLessThan(text.indexOf('ourlook-'));
  });

  test('links the page of a collection to the store if its URL is set', async () => {
    const base = await replica({ STORE_URL: 'https://store.example' });
    const owner = await make.user();
    const { id } = await make.collection({ owner, title: 'Sea & ships' });
    const browser = await signInBrowser(owner, base);
    const { text } = await browser.get(`/user/settings/collections/${id}`);
    expect(text).toMatch(new RegExp(`href="https://store.example/c/${id}/sea-ships"\\s*>Open in the store<`));
  });
});

describe('sign-in by a proxy', () => {
  const header = { TRUSTED_IDENTITY_HEADER: 'X-Store-User' };
  let trusting: () => string;
  let distrusting: () => string;
  beforeAll(async () => {
    trusting = await replica({ ...header, TRUSTED_PROXIES: 'loopback' });
    distrusting = await replica({ ...header, TRUSTED_PROXIES: '192.0.2.1' });
  });

  test('signs in the user that a trusted proxy names, in any case, with working forms', async () => {
    const user = await make.user({ username: 'Proxied' });
    const browser = new Browser({ 'x-store-user': 'proxied' }, trusting);
    expect((await browser.get(KEYS)).status).toBe(200);
    expect(browser.page.text).not.toContain('Sign out');
    await browser.get(`${KEYS}/new`);
    expect((await browser.submit(KEYS, { label: 'by proxy' })).status).toBe(303);
    expect(await sql(`SELECT user_id FROM api_keys WHERE label = 'by proxy'`)).toEqual([
      { user_id: user.id },
    ]);
    expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toHaveLength(1);
  });

  test("gives another user's header another session, and signs no user in without one", async () => {
    const [one, other] = [await make.user(), await make.user({ display_name: 'The other' })];
    const first = new Browser({ 'x-store-user': one.username }, trusting);
    await first.get(KEYS);
    const second = new Browser({ 'x-store-user': other.username }, trusting);
    for (const [name, value] of first.cookies) second.cookies.set(name, value);
    await second.get(KEYS);
    expect(second.page.text).toContain('The other');
    expect(second.cookies.get('gamewharf_session')).not.toBe(first.cookies.get('gamewharf_session'));
    const nobody = new Browser({}, trusting);
    for (const [name, value] of first.cookies) nobody.cookies.set(name, value);
    expect((await nobody.get(KEYS)).location).toContain('/login');
    expect((await new Browser({ 'x-store-user': '' }, trusting).get(KEYS)).location).toContain('/login');
  });

  const readSessions = ({ id }: Actor) => sql('SELECT FROM sessions WHERE user_id = $1', [id]);

  test('creates no session for a form without one', async () => {
    const user = await make.user();
    const browser = new Browser({ 'x-store-user': user.username }, trusting);
    expect((await browser.post(KEYS, { label: 'x' })).status).toBe(403);
    browser.cookies.set('gamewharf_session', 'x'.repeat(43));
    expect((await browser.post(KEYS, { label: 'x' })).status).toBe(403);
    expect(await readSessions(user)).toEqual([]);
    expect((await browser.get(KEYS)).status).toBe(200);
    expect(await readSessions(user)).toHaveLength(1);
  });

  test('deletes sessions that were not used for too long', async () => {
    const user = await make.user();
    const used = new Browser({ 'x-store-user': user.username }, trusting);
    await used.get(KEYS);
    await sql(`UPDATE sessions SET seen_at = now() - interval '719 minutes' WHERE user_id = $1`, [user.id]);
    await theApp().get(ExpiredRows).sweep();
    expect(await readSessions(user)).toHaveLength(1);
    await sql(`UPDATE sessions SET seen_at = now() - interval '721 minutes' WHERE user_id = $1`, [user.id]);
    await theApp().get(ExpiredRows).sweep();
    expect(await readSessions(user)).toEqual([]);
  });

  test('ignores the header of an untrusted client', async () => {
    const user = await make.user();
    const browser = new Browser({ 'x-store-user': user.username }, distrusting);
    expect((await browser.get(KEYS)).location).toContain('/login');
  });

  test('ignores the header without the setting', async () => {
    const user = await make.user();
    const { status } = await send('GET', KEYS, { headers: { 'x-store-user': user.username } });
    expect(status).toBe(303);
  });

  test('reports a user who has not been imported', async () => {
    const browser = new Browser({ 'x-store-user': 'unheard-of' }, trusting);
    expect((await browser.get(KEYS)).status).toBe(403);
    expect(browser.words).toContain('Your account doesn’t exist here yet.');
  });

  test('disables passwords', async () => {
    const known = await withPassword(await make.user());
    const browser = new Browser({}, trusting);
    await browser.get('/login');
    expect(browser.words).toContain('Sign in at Gamewharf');
    expect(browser.page.text).not.toContain('type="password"');
    const response = await browser.post('/login', { username: known.username, password: PASSWORD });
    expect(response.status).toBe(403);
  });
});
