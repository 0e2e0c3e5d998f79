import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { PASSWORD, withPassword } from './support/browser';
import { chromiumPath, openChromium, Window } from './support/chromium';
import { type Actor } from './support/actor';
import { baseUrl, useStore } from './support/app';
import { make } from './support/make';
import { sql } from './support/sql';

const FOLDER = join('docs', 'screenshots');
const OOB = 'urn:ietf:wg:oauth:2.0:oob';
const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1100, height: 720 } },
  dark: { colorScheme: 'dark', viewport: { width: 1100, height: 720 } },
  narrow: { colorScheme: 'light', viewport: { width: 390, height: 780 } },
} as const;

useStore({ RATE_LIMIT: 'off', STORE_NAME: 'Lighthouse Games' });

let browser: Browser;
let user: Actor;
const paths: Record<string, string> = { home: '/', 'api-keys': '/user/settings/api-keys' };

const application = (client_id: string, owner: Actor, name: string, scopes: string[]) =>
  sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed, created_at)
     VALUES ($1, $2, $3, '{https://tycoon.example/signed-in,http://127.0.0.1/callback,${OOB}}', $4, true, '2026-03-14')`,
    [client_id, owner.id, name, scopes],
  );

const asked = (redirect_uri: string) =>
  `/user/oauth?${new URLSearchParams({
    response_type: 'token',
    client_id: 'tide',
    scope: 'profile:me profile:games collection',
    redirect_uri,
  }).toString()}`;

beforeAll(async () => {
  if (!chromiumPath) throw new Error('Install Chromium, or set CHROMIUM to one.');
  mkdirSync(FOLDER, { recursive: true });
  browser = await openChromium();
  user = await withPassword(await make.user({ username: 'marina', display_name: 'Marina', developer: true }));
  const maker = await make.user({ username: 'tidal-games' });
  await sql('DELETE FROM api_keys WHERE user_id = $1', [user.id]);
  await sql(
    `INSERT INTO api_keys (key_hash, hint, user_id, label, last_used_at, last_used_from, scopes, expires_at) VALUES
     (sha256('1'), 'gw_4kTz9', $1, 'Build server', '2026-06-01', '198.51.100.0/24', '{profile:games,game:view:purchases}', now() + interval '80 hours'),
     (sha256('2'), 'gw_Qx81m', $1, 'Laptop', '2026-05-28', '2001:db8:7::/48', NULL, now() + interval '300 days'),
     (sha256('3'), 'gw_c0VbR', $1, 'Old website, nightly export of all sales', NULL, NULL, NULL, NULL)`,
    [user.id],
  );
  await application('4f1d0c5b2a7e9368d4f1d0c5b2a7e936', user, 'Harbour Radio', ['profile:me']);
  await application('b2a7e9368d4f1d0c5b2a7e936d4f1d0c', user, 'Sales dashboard', ['profile', 'game']);
  await application('tide', maker, 'Tide Launcher', ['profile', 'collection', 'game']);
  await application('whale', maker, 'Whale Watch', ['profile', 'collection']);
  const [grant] = await sql<{ id: number }>(
    `INSERT INTO oauth_grants (user_id, client_id, scopes, created_at) VALUES
     ($1, 'whale', '{profile:me,collection:view}', '2026-01-15') RETURNING id`,
    [user.id],
  );
  await sql(
    `INSERT INTO api_keys (key_hash, hint, user_id, scopes, grant_id, last_used_at) VALUES (sha256('4'), 'gw', $1, '{profile:me}', $2, '2026-06-02')`,
    [user.id, grant!.id],
  );
  await sql(
    `INSERT INTO oauth_device_requests (device_code_hash, user_code, client_id, scopes, interval_seconds, expires_at)
     VALUES (sha256('5'), 'LVTD-HGCC', 'tide', '{profile:me,collection:view}', 5, now() + interval '1 hour')`,
  );
  const games = [
    await make.game({ owner: user }),
    await make.game({ owner: user }),
    await make.game({ owner: user }),
  ];
  const titles = ['Short games for long crossings', 'Played in the harbour bar', 'Games with weather'];
  for (const [i, title] of titles.entries())
    await make.collection({
      owner: i === 1 ? maker : user,
      admins: i === 1 ? [user] : [],
      title,
      games: games.slice(i),
      private: i === 2,
    });
  await sql('INSERT INTO profile_collections SELECT $1, min(id) FROM collections', [user.id]);
  const [key] = await sql<{ id: number }>(`SELECT id FROM api_keys WHERE label = 'Laptop'`);
  Object.assign(paths, {
    'one-key': `/user/settings/api-keys/${key!.id}`,
    'revoke-key': `/user/settings/api-keys/${key!.id}/revoke`,
    applications: '/user/settings/oauth-apps',
    'register-application': '/user/settings/oauth-apps/new',
    application: '/user/settings/oauth-apps/b2a7e9368d4f1d0c5b2a7e936d4f1d0c',
    'delete-application': '/user/settings/oauth-apps/b2a7e9368d4f1d0c5b2a7e936d4f1d0c/delete',
    'allowed-applications': '/user/settings/authorized-apps',
    'revoke-access': `/user/settings/authorized-apps/${grant!.id}/revoke`,
    collections: '/user/settings/collections',
    consent: asked('https://tycoon.example/signed-in'),
    device: '/user/oauth/device',
    'device-consent': '/user/oauth/device?code=LVTD-HGCC',
    error: '/user/oauth?client_id=unknown',
    'no-such-page': '/user/nothing',
  });
});

afterAll(() => browser?.close());

test.each(Object.entries(LOOKS))('takes screenshots: %s', async (name, look) => {
  const window = await Window.open(browser, baseUrl(), look);
  const { page } = window;
  const take = (what: string) =>
    page.screenshot({ path: join(FOLDER, `${what}-${name}.png`), fullPage: true });
  await page.goto('/developers');
  await take('developers-signed-out');
  await page.goto('/login');
  await take('sign-in');
  await page.getByLabel('Username or email address').fill(user.username);
  await page.getByLabel('Password').fill('not this one');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await take('sign-in-rejected');
  await window.signIn(user.username, PASSWORD);
  for (const [what, path] of Object.entries(paths)) {
    await page.goto(path);
    await take(what);
  }
  await page.goto('/user/settings/api-keys/new');
  await page.getByLabel('Name of the key').fill('Phone');
  await page.getByRole('button', { name: 'Create key' }).click();
  await take('new-key');
  await page.goto('/user/settings/api-keys/new');
  await page.getByLabel('Expires').selectOption('On a date');
  await page.getByLabel('Name of the key').fill('Accountant');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('alert').first().waitFor();
  await take('key-rejected');
  await page.goto('/user/settings/oauth-apps/new');
  await page.getByLabel('Name').fill('Harbour Pilot');
  await page.getByLabel('Redirect URIs').fill('http://tycoon.example/');
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByRole('alert').waitFor();
  await take('application-rejected');
  await page.goto(asked(OOB));
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByLabel('Access token').waitFor();
  await take('copy');
  await sql(`UPDATE api_keys SET revoked_at = now() WHERE label = 'Phone'`);
  await sql(`WITH it AS (DELETE FROM oauth_grants WHERE client_id = 'tide' RETURNING id)
               DELETE FROM api_keys USING it WHERE grant_id = it.id`);
  await page.goto('/login');
  await window.close();
});
