import { MAX_FORM_BYTES } from '../../src/platform/input/body';
import { type Browser, signInBrowser, cookieHeaders } from '../support/browser';
import { holdLocks, untilBlocked } from '../support/locks';
import { openConnections } from '../support/pool';
import { type Actor } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const KEYS = '/user/settings/api-keys';
const APPS = '/user/settings/oauth-apps';

let user: Actor;
let browser: Browser;
beforeEach(async () => {
  user = await make.user();
  browser = await signInBrowser(user);
});

/** Sends a form twice, so that both wait for the user's lock at once; returns the statuses, sorted. */
async function twice(path: string, form: Record<string, string>): Promise<number[]> {
  await openConnections(theApp(), 2);
  const locks = await holdLocks(`SELECT FROM users WHERE id = ${user.id} FOR UPDATE`);
  const request = {
    headers: {
      ...cookieHeaders(browser),
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
    },
    body: new URLSearchParams(form).toString(),
  };
  const responses = Promise.all([send('POST', path, request), send('POST', path, request)]);
  await untilBlocked(2);
  await locks.release();
  return (await responses).map(({ status }) => status).toSorted((a, b) => a - b);
}

test('rejects a form of more than 128 KiB', async () => {
  const { status } = await browser.post(KEYS, { label: 'x'.repeat(MAX_FORM_BYTES) });
  expect(status).toBe(413);
});

test('limits a user to 100 API keys under concurrency', async () => {
  await sql(
    `INSERT INTO api_keys (user_id, key_hash, hint) SELECT $1, sha256(('own ' || n)::bytea), '' FROM generate_series(1, 98) n`,
    [user.id],
  );
  await browser.get(`${KEYS}/new`);
  const form = { ...browser.formFields(KEYS), label: 'one more' };
  expect(await twice(KEYS, form)).toEqual([303, 400]);
  await browser.submit(KEYS, form);
  expect(browser.words).toContain('You have reached the limit of 100 keys.');
  expect(browser.formFields(KEYS).label).toBe('one more');
  const live = 'SELECT FROM api_keys WHERE user_id = $1 AND revoked_at IS NULL';
  expect(await sql(live, [user.id])).toHaveLength(100);
  await sql(`UPDATE api_keys SET revoked_at = now() WHERE user_id = $1 AND label = 'one more'`, [user.id]);
  expect(await twice(KEYS, form)).toEqual([303, 400]);
});

test('does not count keys that apps hold', async () => {
  const [application] = await sql<{ client_id: string }>(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
     VALUES ('many', $1, 'Many', '{}', '{profile}') RETURNING client_id`,
    [user.id],
  );
  const [grant] = await sql<{ id: number }>(
    `INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, $2, '{profile}') RETURNING id`,
    [user.id, application!.client_id],
  );
  await sql(
    `INSERT INTO api_keys (user_id, grant_id, expires_at, key_hash, hint)
     SELECT $1, $2, now() + interval '1 hour', sha256(('held ' || n)::bytea), '' FROM generate_series(1, 200) n`,
    [user.id, grant!.id],
  );
  await browser.get(`${KEYS}/new`);
  expect((await browser.submit(KEYS, { label: 'mine' })).status).toBe(303);
});

test('limits a user to 50 apps under concurrency', async () => {
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
     SELECT 'capped ' || n, $1, 'Capped', '{}', '{profile}' FROM generate_series(1, 49) n`,
    [user.id],
  );
  await browser.get(`${APPS}/new`);
  const form = { ...browser.formFields(APPS), name: 'One more', redirect_uris: 'https://game.example/' };
  expect(await twice(APPS, form)).toEqual([303, 400]);
  await browser.submit(APPS, form);
  expect(browser.words).toContain('You have reached the limit of 50 apps.');
  expect(browser.formFields(APPS).name).toBe('One more');
  expect(await sql('SELECT FROM oauth_applications WHERE user_id = $1', [user.id])).toHaveLength(50);
});
