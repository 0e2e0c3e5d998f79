import { setImmediate as checkPhase } from 'node:timers/promises';
import * as argon2 from '@node-rs/argon2';
import * as bcrypt from 'bcrypt';
import { ApiKeyUses } from '../../src/auth/keys/api-key-uses';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { AttemptsService, networkSubject } from '../../src/auth/sign-in/attempts.service';
import { ExpiredRows } from '../../src/platform/database/expired-rows';
import { Demo } from '../../src/dashboard/layout/demo';
import { PasswordCost } from '../../src/auth/sign-in/password-hash';
import { PasswordQueue } from '../../src/auth/sign-in/password-queue';
import { type ApiError, serviceUnavailable } from '../../src/platform/errors/api-error';
import { Client } from '../../src/platform/limits/client-limits';
import { lengthenWaits } from '../support/attempts';
import { Browser, signInBrowser, type Page, PASSWORD, withPassword } from '../support/browser';
import { type Actor, anonymous } from '../support/actor';
import { logged, theApp, theClock, useStore, LOW_COST } from '../support/app';
import { failure, ok, send } from '../support/http';
import { holdLocks, untilBlocked } from '../support/locks';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';
import { until } from '../support/time';
import { ROOT_SCOPES } from '../../src/auth/access/scopes';

useStore({ RATE_LIMIT: 'off' });

const KEYS = '/user/settings/api-keys';
const WRONG = 'Sign in The username or password is incorrect.';
const HOUR = 3600;
const waitOver = () => sql(`UPDATE attempts SET blocked_until = now() - interval '1 second'`);
const noAttempts = () => sql('DELETE FROM attempts');

beforeAll(lengthenWaits);
afterEach(noAttempts);

describe('sign-in', () => {
  test('accepts a username in any case and redirects back', async () => {
    const user = await withPassword(await make.user({ username: 'Captain' }));
    const browser = new Browser();
    expect((await browser.get('/user/settings/collections')).location).toBe(
      '/login?return_to=%2Fuser%2Fsettings%2Fcollections',
    );
    await browser.follow();
    const { status, location } = await browser.submit('/login', { username: 'cAPTAIN', password: PASSWORD });
    expect({ status, location }).toEqual({ status: 303, location: '/user/settings/collections' });
    expect(await sql('SELECT user_id FROM sessions WHERE user_id = $1', [user.id])).toHaveLength(1);
  });

  test('accepts a verified email address, but not one that was only entered', async () => {
    await withPassword(
      await make.user({
        emails: [
          { email: 'sails@example.com', verified: true },
          { email: 'mast@example.com', verified: false },
        ],
      }),
    );
    expect((await new Browser().signIn('Sails@Example.com')).status).toBe(303);
    expect((await new Browser().signIn('mast@example.com')).status).toBe(403);
  });

  test('returns the same page for a wrong password, an unknown user and a user without a password', async () => {
    const [known, bare] = [await withPassword(await make.user()), await make.user()];
    const pages = [];
    for (const name of [known.username, 'nobody-at-all', bare.username]) {
      const browser = new Browser();
      const { status, text } = await browser.signIn(name, 'wrong password');
      expect(browser.words).toContain(WRONG);
      pages.push({
        status,
        text: text.replaceAll(name, 'NAME').replace(/name="form_token" value="[^"]*"/, ''),
      });
    }
    expect(pages[0]!.status).toBe(403);
    expect(pages[1]).toEqual(pages[0]);
    expect(pages[2]).toEqual(pages[0]);
  });

  test('takes equally long for them: one hash of the same cost', async () => {
    const [known, bare] = [await withPassword(await make.user()), await make.user()];
    const queue = theApp().get(PasswordQueue);
    const verified = jest.spyOn(queue, 'matches');
    for (const name of [known.username, 'nobody-at-all', bare.username])
      await new Browser().signIn(name, 'wrong password');
    const hashes = verified.mock.calls.map(([, hash]) => hash);
    verified.mockRestore();
    expect(hashes).toEqual([expect.stringMatching(/^\$argon2id/), ...hashes.slice(1)]);
    expect(hashes.slice(1).map((hash) => typeof hash === 'string')).toEqual([false, false]);
    const { decoy } = queue as unknown as { decoy: string };
    const hashParameters = (hash: string) => hash.split('$').slice(0, 4);
    expect(hashParameters(decoy)).toEqual(hashParameters(hashes[0]!));
    expect(decoy).toHaveLength(hashes[0]!.length);
  });

  test('uses the hash cost that OWASP recommends, and a lower one only in tests', () => {
    const { decoy } = new PasswordQueue(new PasswordCost()) as unknown as { decoy: string };
    expect(decoy).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  });

  test.each([
    ['bcrypt', () => bcrypt.hash(PASSWORD, 4)],
    ['bcrypt as written by PHP', async () => (await bcrypt.hash(PASSWORD, 4)).replace('$2b', '$2y')],
    ['argon2i', () => argon2.hash(PASSWORD, { ...LOW_COST, algorithm: 1 })],
    ['argon2id at another cost', () => argon2.hash(PASSWORD, { ...LOW_COST, timeCost: 3 })],
  ])("accepts another system's hash and replaces it: %s", async (_, hashed) => {
    const user = await make.user();
    await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [user.id, await hashed()]);
    const stored = async () =>
      (await sql<{ password_hash: string }>('SELECT password_hash FROM users WHERE id = $1', [user.id]))[0]!
        .password_hash;
    const before = await stored();
    expect((await new Browser().signIn(user.username, 'wrong')).status).toBe(403);
    expect(await stored()).toBe(before);
    expect((await new Browser().signIn(user.username)).status).toBe(303);
    const renewed = await stored();
    expect(renewed).toMatch(/^\$argon2id\$v=19\$m=8,t=1,p=1\$/);
    expect((await new Browser().signIn(user.username)).status).toBe(303);
    expect(await stored()).toBe(renewed);
    expect((await new Browser().signIn(user.username, 'wrong')).status).toBe(403);
  });

  test('keeps a new password that is set while a hash is replaced', async () => {
    const user = await make.user();
    const [old, other] = await Promise.all([bcrypt.hash(PASSWORD, 4), bcrypt.hash('new', 4)]);
    await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [user.id, old]);
    const renewing = jest.spyOn(theApp().get(PasswordQueue), 'renewed').mockImplementationOnce(async () => {
      await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [user.id, other]);
      return 'a hash of the old password';
    });
    expect((await new Browser().signIn(user.username)).status).toBe(403);
    renewing.mockRestore();
    expect(await sql('SELECT password_hash FROM users WHERE id = $1', [user.id])).toEqual([
      { password_hash: other },
    ]);
  });

  test('reports empty fields', async () => {
    const browser = new Browser();
    expect((await browser.signIn('', '')).status).toBe(400);
  });

  test('delays attempts per account, by any client, whether it exists or not', async () => {
    const known = await withPassword(await make.user());
    for (const name of [known.username, 'nobody-at-all']) {
      await noAttempts();
      for (let i = 0; i < 5; i++) expect((await new Browser().signIn(name, 'wrong')).status).toBe(403);
      for (const seconds of [1, 2, 4, 8]) {
        const [{ wait }] = (await sql<{ wait: number }>(
          `SELECT max(extract(epoch FROM blocked_until - expires_at + interval '1 day'))::int AS wait FROM attempts`,
        )) as [{ wait: number }];
        expect(wait).toBe(HOUR + seconds);
        const { status, headers } = await new Browser().signIn(name, 'wrong');
        expect(status).toBe(429);
        expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(wait);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(wait - HOUR);
        await waitOver();
        expect((await new Browser().signIn(name, 'wrong')).status).toBe(403);
      }
    }
  });

  test('allows five attempts per account, by any of its names', async () => {
    const email = 'ivan@example.com';
    const user = await withPassword(
      await make.user({ username: 'Ivan', emails: [{ email, verified: true }] }),
    );
    const names = ['ivan', email, 'IVAN', 'Ivan@Example.com', 'iVaN'];
    for (const name of names) expect((await new Browser().signIn(name, 'wrong')).status).toBe(403);
    for (const name of names) expect((await new Browser().signIn(name, 'wrong')).status).toBe(429);
    // Case is ignored for ASCII letters only: with a dotted capital I it is another name.
    expect((await new Browser().signIn('\u0130van', 'wrong')).status).toBe(403);
    await waitOver();
    expect((await new Browser().signIn(user.username)).status).toBe(303);
  });

  test('allows five attempts per unknown name, in any case', async () => {
    for (const name of ['igor', 'IGOR', 'iGOR', 'Igor', 'igoR'])
      expect((await new Browser().signIn(name, 'wrong')).status).toBe(403);
    expect((await new Browser().signIn('iGor', 'wrong')).status).toBe(429);
  });

  test('rejects the right password as well during the delay', async () => {
    const user = await withPassword(await make.user());
    for (let i = 0; i < 6; i++) {
      await new Browser().signIn(user.username, 'wrong');
      await waitOver();
    }
    await new Browser().signIn(user.username, 'wrong');
    expect((await new Browser().signIn(user.username)).status).toBe(429);
    await waitOver();
    expect((await new Browser().signIn(user.username)).status).toBe(303);
    expect((await new Browser().signIn(user.username, 'wrong')).status).toBe(403);
  });

  test('limits concurrent attempts', async () => {
    const browsers = Array.from({ length: 12 }, () => new Browser());
    const responses = await Promise.all(browsers.map((browser) => browser.signIn('nobody-at-all', 'wrong')));
    const count = (status: number) => responses.filter((response) => response.status === status).length;
    expect(count(403)).toBeGreaterThan(0);
    expect(count(403)).toBeLessThanOrEqual(5);
    // On a busy machine a 503 may come before the password is checked.
    expect(count(403) + count(429) + count(503)).toBe(12);
  });

  test('concurrent sign-ins of two people at one IP address succeed', async () => {
    const users = await Promise.all([make.user(), make.user()].map(async (user) => withPassword(await user)));
    expect((await new Browser().signIn(users[0]!.username)).status).toBe(303);
    // Another sign-in, which begins later but gets the lock first.
    const { query, commit } = await holdLocks('SELECT FROM attempts FOR UPDATE');
    const response = new Browser().signIn(users[1]!.username);
    await untilBlocked();
    await query('UPDATE attempts SET blocked_until = clock_timestamp()');
    await commit();
    expect((await response).status).toBe(303);
  });

  test('delays attempts per IP address, across all accounts', async () => {
    await sql('DELETE FROM attempts');
    for (let i = 0; i < 20; i++) expect((await new Browser().signIn(`ghost${i}`, 'wrong')).status).toBe(403);
    expect((await new Browser().signIn('ghost-another', 'wrong')).status).toBe(429);
    expect(
      await theApp()
        .get(AttemptsService)
        .reserve([networkSubject('192.0.2.7')]),
    ).toBe(0);
  });

  test('resets the failed attempts of the account, but not of the IP address, after the right password', async () => {
    const user = await withPassword(await make.user());
    for (let i = 0; i < 4; i++) expect((await new Browser().signIn(user.username, 'wrong')).status).toBe(403);
    expect((await new Browser().signIn(user.username)).status).toBe(303);
    for (let i = 0; i < 5; i++) expect((await new Browser().signIn(user.username, 'wrong')).status).toBe(403);
    for (let i = 0; i < 11; i++) expect((await new Browser().signIn(`ghost${i}`, 'wrong')).status).toBe(403);
    expect((await new Browser().signIn('ghost-another', 'wrong')).status).toBe(429);
  });

  test('computes two hashes at a time, queues a few, and rejects more at once', async () => {
    const queue = theApp().get(PasswordQueue);
    const client = new Client('192.0.2.1');
    const order: string[] = [];
    const results = await Promise.allSettled(
      Array.from({ length: 30 }, () =>
        queue.matches(client, undefined, 'x').then(
          () => order.push('verified'),
          (error: ApiError) => {
            order.push('rejected');
            throw error;
          },
        ),
      ),
    );
    const rejected = results.flatMap((one) => (one.status === 'rejected' ? [one.reason as ApiError] : []));
    expect(rejected.map(({ statusCode: status, errors }) => ({ status, errors }))).toEqual(
      Array.from({ length: 20 }, () => ({ status: 503, errors: ['service unavailable'] })),
    );
    expect(order.slice(0, 20)).toEqual(rejected.map(() => 'rejected'));
  });

  test('does not count an attempt that is rejected because the queue is full', async () => {
    const user = await withPassword(await make.user());
    const queue = theApp().get(PasswordQueue);
    const full = jest.spyOn(queue, 'matches').mockRejectedValue(serviceUnavailable());
    for (let i = 0; i < 7; i++) expect((await new Browser().signIn(user.username)).status).toBe(503);
    full.mockRestore();
    expect((await new Browser().signIn(user.username)).status).toBe(303);
  });

  test('concurrent sign-ins of an imported user succeed, though only one replaces the hash', async () => {
    const user = await make.user();
    const imported = await bcrypt.hash(PASSWORD, 4);
    await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [user.id, imported]);
    const queue = theApp().get(PasswordQueue);
    const renewed = queue.renewed.bind(queue);
    let first: Page | undefined;
    const renewing = jest.spyOn(queue, 'renewed').mockImplementationOnce(async (...given) => {
      first = await new Browser().signIn(user.username);
      return renewed(...given);
    });
    const second = await new Browser().signIn(user.username);
    renewing.mockRestore();
    expect([first?.status, second.status]).toEqual([303, 303]);
  });

  test('a client that fills the queue does not keep another one from signing in', async () => {
    const user = await withPassword(await make.user());
    const queue = theApp().get(PasswordQueue);
    const client = new Client('192.0.2.1');
    let full = true;
    const waiting = Array.from({ length: 10 }, async () => {
      // A slot is released in the check phase of the event loop.
      while (full) await queue.hash(client, 'x').catch(() => checkPhase());
    });
    expect((await new Browser().signIn(user.username)).status).toBe(303);
    full = false;
    await Promise.all(waiting);
  });

  test.each([
    '//evil.example/',
    'https://evil.example/',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    '/.//evil.example',
    '/x/..//evil.example',
    '/%0d%0aSet-Cookie:x',
  ])('never redirects to another host: %s', async (return_to) => {
    const user = await withPassword(await make.user());
    const { location } = await new Browser().signIn(user.username, PASSWORD, return_to);
    expect(new URL(location!, 'http://here.invalid').host).toBe('here.invalid');
  });

  test('logs every attempt without name, email address or password', async () => {
    const user = await withPassword(await make.user({ username: 'logged-user' }));
    await new Browser().signIn(user.username, 'secret-guess');
    await new Browser().signIn(user.username);
    const text = logged.join('');
    expect(text).toContain('"event":"user.sign_in_failed"');
    expect(text).toContain(`"event":"user.signed_in","request_id"`);
    expect(text).not.toContain('secret-guess');
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain('logged-user');
  });

  test('stores the network of a failed attempt, not the IP address', async () => {
    const user = await withPassword(await make.user());
    await new Browser().signIn(user.username, 'wrong');
    const events = () =>
      sql<{ details: object }>(
        `SELECT details FROM audit_events WHERE event = 'user.sign_in_failed' AND user_id = $1`,
        [user.id],
      );
    await until(async () => (await events()).length === 1);
    expect(await events()).toEqual([{ details: { reason: 'wrong', network: '127.0.0.0/24' } }]);
    expect(logged.join('')).not.toContain('"127.0.0.1"');
  });
});

describe('an API client at the sign-in form', () => {
  const ask = async (headers: Record<string, string>, body = 'username=x&password=y') => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const { status, body: response } = await send('POST', '/login', {
      headers: { ...type, ...headers },
      body,
    });
    return { status, body: response };
  };

  test.each<Record<string, string>>([
    {},
    { accept: '*/*' },
    { accept: 'application/json' },
    { accept: 'text/plain, application/*' },
  ])('is rejected with 404: %j', async (headers) => {
    expect(await ask(headers)).toEqual(failure(404, 'invalid api endpoint'));
    expect(await ask({ ...headers, 'content-type': 'application/json' }, '{"username":"x"}')).toEqual(
      failure(404, 'invalid api endpoint'),
    );
    expect(await sql('SELECT FROM attempts')).toEqual([]);
  });

  test.each(['text/html', 'TEXT/HTML', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'])(
    'a browser gets a page: %s',
    async (accept) => {
      const { status, body } = await ask({ accept });
      expect(status).toBe(403);
      expect(body).toContain('<title>Access denied');
    },
  );

  test('gets errors of other pages as JSON', async () => {
    const { status, body } = await send('GET', '/user/oauth?client_id=nobody');
    expect({ status, body }).toEqual(
      failure(400, 'The app that sent you here is unknown: its client_id is missing or wrong.'),
    );
  });
});

describe('sessions', () => {
  test('set a cookie for this host only, not readable by scripts', async () => {
    const user = await withPassword(await make.user());
    const { headers } = await new Browser().signIn(user.username);
    expect(headers.get('set-cookie')).toMatch(
      /^gamewharf_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=1209600$/,
    );
  });

  test('last until the browser closes for anonymous users, and are deleted by signing out', async () => {
    const { headers } = await new Browser().get('/login');
    expect(headers.get('set-cookie')).toMatch(
      /^gamewharf_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const browser = await signInBrowser(await make.user());
    await browser.get(KEYS);
    const left = await browser.submit('/logout');
    expect(left.headers.get('set-cookie')).toBe(
      'gamewharf_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0',
    );
  });

  test('find their cookie among others and accept no other', async () => {
    const browser = await signInBrowser(await make.user());
    const token = browser.cookies.get('gamewharf_session')!;
    const statusWith = async (cookie: string) => (await new Browser({ cookie }).get(KEYS)).status;
    for (const cookie of [
      `other=x; gamewharf_session=${token}; more=y`,
      `flag;gamewharf_session=${token}`,
      `other=x; gamewharf_session = ${token} ;more=y`,
    ])
      expect(await statusWith(cookie)).toBe(200);
    for (const name of ['other', 'gamewharf_session2', 'Gamewharf_session'])
      expect(await statusWith(`${name}=${token}`)).toBe(303);
  });

  test('are not fixed: a cookie planted before sign-in is useless afterwards', async () => {
    const user = await withPassword(await make.user());
    const victim = new Browser();
    const planted = 'A'.repeat(43);
    victim.cookies.set('gamewharf_session', planted);
    await victim.signIn(user.username);
    expect(victim.cookies.get('gamewharf_session')).not.toBe(planted);
    const attacker = new Browser();
    attacker.cookies.set('gamewharf_session', planted);
    expect((await attacker.get(KEYS)).status).toBe(303);
    expect((await victim.get(KEYS)).status).toBe(200);
  });

  test.each([
    ['signing out', (browser: Browser) => browser.submit('/logout')],
    [
      'a second sign-in',
      (browser: Browser, { username }: Actor) =>
        browser.post('/login', { ...browser.formFields('/logout'), username, password: PASSWORD }),
    ],
  ])('end with %s for every holder of the cookie', async (_, leave) => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    const attacker = new Browser();
    attacker.cookies.set('gamewharf_session', browser.cookies.get('gamewharf_session')!);
    expect((await attacker.get(KEYS)).status).toBe(200);
    await browser.get(KEYS);
    expect((await leave(browser, user)).status).toBe(303);
    expect((await attacker.get(KEYS)).location).toContain('/login');
  });

  test('end after inactivity and after a maximum age', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    await sql(`UPDATE sessions SET seen_at = now() - interval '719 minutes' WHERE user_id = $1`, [user.id]);
    expect((await browser.get(KEYS)).status).toBe(200);
    const [row] = await sql<{ fresh: boolean }>(
      `SELECT seen_at > now() - interval '1 minute' AS fresh FROM sessions WHERE user_id = $1`,
      [user.id],
    );
    expect(row!.fresh).toBe(true);
    await sql(`UPDATE sessions SET seen_at = now() - interval '721 minutes' WHERE user_id = $1`, [user.id]);
    expect((await browser.get(KEYS)).status).toBe(303);
    await sql(`UPDATE sessions SET seen_at = now(), expires_at = now() WHERE user_id = $1`, [user.id]);
    expect((await browser.get(KEYS)).status).toBe(303);
  });

  test('cannot be taken over with the contents of the database', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    const token = browser.cookies.get('gamewharf_session')!;
    const [row] = await sql<{ token_hash: Buffer }>('SELECT token_hash FROM sessions WHERE user_id = $1', [
      user.id,
    ]);
    expect(row!.token_hash.toString('base64url')).not.toBe(token);
    expect(row!.token_hash).toHaveLength(32);
  });

  test('do not authenticate API routes, and API credentials do not open pages', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    const cookie = `gamewharf_session=${browser.cookies.get('gamewharf_session')}`;
    const { status, body } = await send('GET', '/profile', { headers: { cookie } });
    expect({ status, body }).toEqual(failure(401, 'authentication required'));
    const page = await new Browser({ authorization: `Bearer ${user.key}` }).get(KEYS);
    expect(page.location).toContain('/login');
  });
});

describe('forms', () => {
  const forged: [string, Record<string, string>, Record<string, string>][] = [
    ['without a token', { label: 'x' }, {}],
    ['with an empty token', { label: 'x', form_token: '' }, {}],
    ['with a made-up token', { label: 'x', form_token: 'A'.repeat(42) }, {}],
  ];
  test.each(forged)('are rejected %s', async (_, fields, headers) => {
    const browser = await signInBrowser(await make.user());
    const { status } = await browser.post(KEYS, fields, headers);
    expect(status).toBe(403);
    expect(browser.words).toContain('This form has expired or was sent from another site');
    expect(await sql('SELECT FROM api_keys WHERE label IS NOT NULL')).toEqual([]);
  });

  test('are rejected with the token of another session', async () => {
    const [victim, attacker] = [
      await signInBrowser(await make.user()),
      await signInBrowser(await make.user()),
    ];
    await attacker.get(`${KEYS}/new`);
    const { form_token } = attacker.formFields(KEYS);
    expect((await victim.post(KEYS, { label: 'x', form_token: form_token! })).status).toBe(403);
  });

  test.each(['cross-site', 'same-site', 'none'])('are rejected when the browser says %s', async (site) => {
    const browser = await signInBrowser(await make.user());
    await browser.get(`${KEYS}/new`);
    const fields = { ...browser.formFields(KEYS), label: 'x' };
    expect((await browser.post(KEYS, fields, { 'sec-fetch-site': site })).status).toBe(403);
    expect((await browser.post(KEYS, fields)).status).toBe(303);
  });

  test('are rejected if their fields are in the query string', async () => {
    const browser = await signInBrowser(await make.user());
    await browser.get(`${KEYS}/new`);
    const { form_token } = browser.formFields(KEYS);
    expect((await browser.post(`${KEYS}?label=x&form_token=${form_token}`, {})).status).toBe(403);
  });

  test('are rejected with a repeated field', async () => {
    const browser = await signInBrowser(await make.user());
    await browser.get(`${KEYS}/new`);
    const { form_token } = browser.formFields(KEYS);
    const cookie = `gamewharf_session=${browser.cookies.get('gamewharf_session')}`;
    const { status } = await send('POST', KEYS, {
      headers: {
        cookie,
        'content-type': 'application/x-www-form-urlencoded',
        'sec-fetch-site': 'same-origin',
      },
      body: `form_token=${form_token}&label=a&label=b`,
    });
    expect(status).toBe(400);
  });

  test('are protected on the sign-in page too, against sign-in as someone else from another site', async () => {
    const user = await withPassword(await make.user());
    const browser = new Browser();
    const { status } = await browser.post(
      '/login',
      { username: user.username, password: PASSWORD },
      { 'sec-fetch-site': 'cross-site' },
    );
    expect(status).toBe(403);
    expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toEqual([]);
  });
});

describe('API keys', () => {
  test('are created, displayed once, used, listed and revoked', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    await browser.get(`${KEYS}/new`);
    await browser.submit(KEYS, { label: 'Build <server>' });
    await browser.follow();
    const key = /<textarea id="new-key"[^>]*>\s*([^<]+)</.exec(browser.page.text)![1]!;
    expect(key).toMatch(/^gw_[0-9A-Za-z]{38}$/);
    expect(browser.page.text).toContain('Build &lt;server&gt;');
    expect((await user.with(key).get('/profile')).status).toBe(200);
    // The defaults of the form: few permissions and an expiry date.
    expect(await user.with(key).get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['profile:me'] }),
    );
    const [row] = await sql<{ days: number }>(
      `SELECT extract(epoch FROM expires_at - now()) / 86400 AS days FROM api_keys WHERE label LIKE 'Build%'`,
    );
    expect(Number(row!.days)).toBeCloseTo(90, 0);

    await browser.get(KEYS);
    expect(browser.page.text).not.toContain(key);
    expect(browser.words).toContain(`${key.slice(0, 8)}…`);

    const revoke =
      /href="(\/user\/settings\/api-keys\/\d+\/revoke)"\s*>Revoke<span class="hidden">\s*Build/.exec(
        browser.page.text,
      )![1]!;
    await browser.get(revoke);
    expect(browser.words).toContain('Revoke this key? Build <server>');
    expect((await user.with(key).get('/profile')).status).toBe(200);
    await browser.submit(revoke);
    await browser.follow();
    expect(browser.words).toContain('The key “Build <server>” was revoked.');
    expect(await user.with(key).get('/profile')).toEqual(failure(401, 'invalid key'));
    expect((await browser.get(revoke)).status).toBe(404);
  });

  test('return 404 if they belong to other users', async () => {
    const { owner, stranger } = await actors();
    const [key] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [owner.id]);
    const browser = await signInBrowser(stranger);
    expect((await browser.get(`${KEYS}/${key!.id}/revoke`)).status).toBe(404);
    await browser.get(`${KEYS}/new`);
    const { form_token } = browser.formFields(KEYS);
    expect((await browser.post(`${KEYS}/${key!.id}/revoke`, { form_token: form_token! })).status).toBe(404);
    expect((await owner.get('/profile')).status).toBe(200);
  });

  const DAY = 86_400_000;
  const dayIn = (days: number) => new Date(theClock().now() + days * DAY).toISOString().slice(0, 10);
  const making = async (user: Actor, fields: Record<string, string>) => {
    const browser = await signInBrowser(user);
    await browser.get(`${KEYS}/new`);
    const { 'scope profile:me': _, ...form } = browser.formFields(KEYS);
    await browser.post(KEYS, { ...form, reach: 'everything', ...fields });
    return browser;
  };

  test.each<[string, Record<string, string>, string]>([
    ['no name', { label: '' }, 'Enter a name'],
    ['a blank name', { label: '   ' }, 'Enter a name'],
    ['a name that is too long', { label: 'x'.repeat(101) }, 'The name can have at most 100 characters.'],
    ['nothing selected', { reach: 'some' }, 'Select at least one permission.'],
    ['an unknown scope alone', { reach: 'some', 'scope admin': 'yes' }, 'Select at least one permission'],
    ['an invalid expiry', { expires: 'soon' }, 'Enter a future date, at most 10 years from now.'],
    ['no days', { expires: '0' }, 'Enter a future date'],
    ['too many days', { expires: '3651' }, 'Enter a future date'],
    ['no date', { expires: 'date' }, 'Enter a future date'],
    ['yesterday', { expires: 'date', expires_on: dayIn(-1) }, 'Enter a future date'],
    ['a day that does not exist', { expires: 'date', expires_on: '2031-02-30' }, 'Enter a future date'],
    ['a date beyond ten years', { expires: 'date', expires_on: dayIn(3652) }, 'Enter a future date'],
    ['days and a date', { expires: '30', expires_on: dayIn(60) }, 'You also entered a date.'],
  ])('are not created with %s, which is reported once, at its field', async (_, fields, problem) => {
    const user = await make.user();
    const browser = await making(user, { label: 'A key', ...fields });
    expect(browser.page.status).toBe(400);
    expect(browser.words.split(problem)).toHaveLength(2);
    const [id] = /(?<=id=")\w+-problem(?=" role="alert")/.exec(browser.page.text)!;
    expect(browser.page.text).toContain(`aria-describedby="${id}"`);
    expect(browser.page.text.match(/role="alert"/g)).toHaveLength(1);
    const sent = { label: 'A key', ...fields };
    expect(browser.formFields(KEYS)).toMatchObject({ label: sent.label.trim() });
    expect(await sql('SELECT FROM api_keys WHERE user_id = $1', [user.id])).toHaveLength(1);
  });

  test.each([
    ['', ['profile:me']],
    ['all', ['profile:me']],
    ['everything', ROOT_SCOPES],
  ])('permit everything only if the form says so: reach %j', async (reach, scopes) => {
    theClock().stop();
    const user = await make.user();
    const browser = await signInBrowser(user);
    await browser.get(`${KEYS}/new`);
    const { expires: _, reach: __, ...form } = browser.formFields(KEYS);
    await browser.post(KEYS, { ...form, label: 'Terse', ...(reach && { reach }) });
    const key = /<textarea id="new-key"[^>]*>\s*([^<]+)</.exec((await browser.follow()).text)![1]!;
    expect(await user.with(key).get('/credentials/info')).toEqual(ok({ type: 'key', scopes }));
    const [row] = await sql<{ expires_at: string }>(
      `SELECT expires_at FROM api_keys WHERE label = 'Terse' AND user_id = $1`,
      [user.id],
    );
    expect(Date.parse(row!.expires_at)).toBe(theClock().now() + 90 * DAY);
  });

  test('permit only the selected scopes and describe them', async () => {
    theClock().stop();
    const user = await make.user();
    const browser = await making(user, {
      label: 'Looks only',
      reach: 'some',
      'scope profile:games': 'yes',
      'scope game:view': 'yes',
      'scope game:view:purchases': 'yes',
      expires: '90',
    });
    await browser.follow();
    const key = /<textarea id="new-key"[^>]*>\s*([^<]+)</.exec(browser.page.text)![1]!;
    expect(browser.words).toContain('See the games you uploaded or can edit, with their earnings');
    // The key doesn't permit profile:me, so the page offers another request to try.
    expect(browser.page.text).toMatch(new RegExp(`Bearer ${key}&quot; http://[^<]*/credentials/info<`));
    const limited = user.with(key);
    expect(await limited.get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['game:view', 'profile:games'] }),
    );
    expect((await limited.get('/profile/games')).status).toBe(200);
    expect(await limited.get('/profile')).toEqual(failure(403, 'api key does not permit `profile:me`'));
    const [row] = await sql<{ expires_at: string }>(
      `SELECT expires_at FROM api_keys WHERE label = 'Looks only' AND user_id = $1`,
      [user.id],
    );
    expect(Date.parse(row!.expires_at)).toBe(theClock().now() + 90 * DAY);
  });

  test('show when they expire, including in the last week and afterwards', async () => {
    const user = await make.user();
    await sql('DELETE FROM api_keys WHERE user_id = $1', [user.id]);
    const last = dayIn(3);
    const browser = await making(user, { label: 'Short', expires: 'date', expires_on: last });
    const key = /<textarea id="new-key"[^>]*>\s*([^<]+)</.exec((await browser.follow()).text)![1]!;
    expect(browser.words).toContain('In 4 days');
    expect(await user.with(key).get('/credentials/info')).toEqual(ok({ type: 'key', scopes: ROOT_SCOPES }));
    const expires = async (at: string) => {
      await sql(`UPDATE api_keys SET expires_at = ${at} WHERE user_id = $1`, [user.id]);
      await browser.get(KEYS);
      return browser.words;
    };
    expect(await expires(`now() + interval '8 days'`)).not.toMatch(/In \d days|Within a day/);
    expect(await expires(`now() + interval '7 days'`)).toContain('In 7 days');
    expect(await expires(`now() + interval '1 hour'`)).toContain('Within a day');
    expect(await expires(`now() - interval '29 days'`)).toContain('Expired');
    await theApp().get(ExpiredRows).sweep();
    expect((await browser.get(KEYS)).text).toContain('Short');
    await expires(`now() - interval '31 days'`);
    await theApp().get(ExpiredRows).sweep();
    expect((await browser.get(KEYS)).text).not.toContain('Short');
  });

  test('can be renamed, unless they belong to others or to apps', async () => {
    const user = await make.user();
    const [mine] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [user.id]);
    const { owner } = await actors();
    const [other] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [owner.id]);
    const browser = await signInBrowser(user);
    await browser.get(`${KEYS}/${mine!.id}`);
    await browser.submit(`${KEYS}/${mine!.id}`, { label: ' ' });
    expect([browser.page.status, browser.words]).toEqual([400, expect.stringContaining('Enter a name')]);
    await browser.submit(`${KEYS}/${mine!.id}`, { label: ' Night <job> ' });
    await browser.follow();
    expect(browser.words).toContain('The key was renamed to “Night <job>”.');
    await browser.get(`${KEYS}/new`);
    const { form_token } = browser.formFields(KEYS);
    const rename = (id: number) =>
      browser.post(`${KEYS}/${id}`, { form_token: form_token!, label: 'taken over' });
    expect((await browser.get(`${KEYS}/${other!.id}`)).status).toBe(404);
    expect((await rename(other!.id)).status).toBe(404);
    await sql(
      `WITH app AS (INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
         VALUES ('renamed', $1, 'App', '{}', '{profile}')),
       granted AS (INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, 'renamed', '{profile}') RETURNING id)
       UPDATE api_keys SET grant_id = granted.id FROM granted WHERE user_id = $1`,
      [user.id],
    );
    expect((await rename(mine!.id)).status).toBe(404);
    expect(await sql(`SELECT FROM api_keys WHERE label = 'taken over'`)).toEqual([]);
  });

  test('show the network of their last use, and no table stores the IP address', async () => {
    const user = await make.user();
    await user.get('/profile');
    const from = async () =>
      (
        await sql<{ last_used_from: string | null }>(
          'SELECT last_used_from::text FROM api_keys WHERE user_id = $1',
          [user.id],
        )
      )[0]!.last_used_from;
    await until(async () => (await from()) !== null);
    expect(await from()).toBe('127.0.0.0/24');
    const browser = await signInBrowser(user);
    await browser.get(KEYS);
    expect(browser.words).toContain('from 127.0.0.0/24');
    for (const address of ['192.0.2.7/32', '192.0.2.0/25', '2001:db8:1:2::/64'])
      await expect(
        sql('UPDATE api_keys SET last_used_from = $2 WHERE user_id = $1', [user.id, address]),
      ).rejects.toThrow('api_keys_last_used_from_check');
  });

  test('show their requests of the last 30 days, counted in the background and deleted later', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    await browser.get(KEYS);
    expect(browser.words).toContain('None');
    await sql(
      `INSERT INTO api_key_requests (api_key_id, day, requests)
       SELECT id, (now() AT TIME ZONE 'UTC')::date - ago, 1000 FROM api_keys, unnest('{1,29,30}'::int[]) ago WHERE user_id = $1`,
      [user.id],
    );
    for (let i = 0; i < 3; i++) await user.get('/profile');
    await theApp().get(ApiKeyUses).flush();
    for (let i = 0; i < 2; i++) await user.get('/profile');
    await theApp().get(ApiKeyUses).flush();
    await browser.get(KEYS);
    expect(browser.words).toContain('2,005 in 30 days');
    expect(browser.page.text.match(/<rect[^>]* height="24"/g)).toHaveLength(2);
    expect(browser.page.text.match(/<rect[^>]* height="0"/g)).toHaveLength(27);
    await theApp().get(ExpiredRows).sweep();
    const stored =
      'SELECT FROM api_key_requests r JOIN api_keys k ON k.id = r.api_key_id WHERE k.user_id = $1';
    expect(await sql(stored, [user.id])).toHaveLength(3);
  });

  test.each(['abc', '1.5', '-1', '%00'])('return 404 for the invalid ID %s', async (id) => {
    const browser = await signInBrowser(await make.user());
    expect((await browser.get(`${KEYS}/${id}/revoke`)).status).toBe(404);
  });

  test('are invalid after they expire', async () => {
    const user = await make.user();
    await sql(`UPDATE api_keys SET expires_at = now() WHERE user_id = $1`, [user.id]);
    expect(await user.get('/profile')).toEqual(failure(401, 'invalid key'));
  });
});

describe('every page', () => {
  test('loads nothing from elsewhere, cannot be framed and is not stored', async () => {
    const request = { headers: { accept: 'text/html' } };
    const { headers, text } = await send('GET', '/login', request);
    const scripts = [...text.matchAll(/<script([^>]*)>/g)].map(([, attributes]) => attributes!);
    const [, nonce] = / nonce="([\w-]{22})"/.exec(scripts[0]!)!;
    expect(scripts.filter((attributes) => !attributes.includes(` nonce="${nonce}"`))).toEqual([]);
    expect((await send('GET', '/login', request)).text).not.toContain(nonce);
    // script-src has no 'self', which would include uploaded scripts under /files/.
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'self'; script-src 'nonce-${nonce}'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('is one small response with a few statements', async () => {
    const user = await make.user();
    const application = await make.user();
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed)
       VALUES ('small', $1, 'Small', '{https://small.example/}', '{profile}', true)`,
      [application.id],
    );
    await sql(
      `INSERT INTO oauth_device_requests (device_code_hash, user_code, client_id, scopes, interval_seconds, expires_at)
       VALUES (sha256('small'), 'SMLL-CDXX', 'small', '{profile}', 5, now() + interval '1 minute')`,
    );
    const browser = await signInBrowser(user);
    for (const path of [
      '/developers',
      '/user/settings/api-keys',
      '/user/settings/oauth-apps',
      '/user/settings/oauth-apps/new',
      '/user/settings/authorized-apps',
      '/user/settings/collections',
      '/user/oauth?response_type=token&client_id=small&scope=profile',
      '/user/oauth/device?code=SMLL-CDXX',
      '/user/oauth/device',
    ]) {
      const statements = await recordStatements(() => browser.get(path));
      const { status, text } = browser.page;
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(text.length).toBeLessThan(10_000);
      expect(text.match(/<(link|script|img)/g)).toHaveLength(4);
      expect(statements.length).toBeLessThanOrEqual(4);
    }
    expect(logged.join('')).toContain('"/user/oauth"');
    expect(logged.join('')).not.toContain('client_id=small');
  });

  test('has assets with a hash in their name, cached indefinitely', async () => {
    const { text } = await new Browser().get('/login');
    const paths = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    expect(paths.length).toBeGreaterThanOrEqual(3);
    for (const path of paths) {
      const { status, headers } = await send('GET', path);
      expect(status).toBe(200);
      expect(path).toMatch(/-[0-9a-f]{12}\.\w+$/);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('content-encoding')).toBe('gzip');
      const etag = headers.get('etag')!;
      expect((await send('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    }
    expect((await send('GET', '/assets/pages.css')).status).toBe(404);
    expect((await send('GET', '/assets/..%2f..%2fcli.ts')).status).toBe(404);
  });

  test('the page for developers explains the service to anonymous visitors with a working example request', async () => {
    const browser = new Browser();
    const { headers, location } = await browser.get('/');
    expect([headers.get('vary'), location]).toEqual(['Accept', '/login']);
    await browser.get('/developers');
    expect(browser.words).toContain('This API tells games, launchers and developer tools who a player is');
    for (const path of ['/docs', '/openapi.json', '/user/settings/api-keys/new', '/login'])
      expect(browser.page.text).toContain(`href="${path}"`);
    expect(await pasted(browser)).toEqual({ name: 'gamewharf', openapi: '/openapi.json' });
    expect(await anonymous.get('/')).toEqual(ok({ name: 'gamewharf', openapi: '/openapi.json' }));
  });

  test("the page for developers uses the demo store's key while it exists", async () => {
    const user = await make.user();
    const demo = theApp().get(Demo);
    demo.access = {
      ...{ api_key: user.key!, username: user.username, password: 'printed', game_id: 1 },
      ...{ slug: 'a', buyer_email: 'a@example.com', channel_name: 'windows', upload_id: 1 },
    };
    try {
      const browser = new Browser();
      await browser.get('/developers');
      expect(await pasted(browser)).toMatchObject({ user: { username: user.username } });
      await browser.get('/login');
      expect(browser.words).toContain('the username and password that npm start printed');
      expect(browser.page.text).not.toContain('printed"');
      await sql('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [user.id]);
      await browser.get('/developers');
      expect(browser.page.text).not.toContain(user.key);
      expect(await pasted(browser)).toMatchObject({ name: 'gamewharf' });
    } finally {
      demo.access = undefined;
    }
  });

  test("the page for developers explains how to start with one's own key", async () => {
    const browser = await signInBrowser(await make.user());
    await browser.get('/developers');
    expect(browser.words).toContain('Your first request, in three steps');
    expect(browser.page.text).toMatch(
      /curl -H &quot;Authorization: Bearer KEY&quot; http:\/\/127\.0\.0\.1:\d+\/profile/,
    );
  });

  test('the start page leads to the sales, the library or the sign-in page', async () => {
    const seller = await make.user();
    await make.game({ owner: seller });
    const open = async (browser: Browser) => [
      (await browser.get('/')).location,
      (await browser.get('/user/settings')).location,
    ];
    expect(await open(await signInBrowser(seller))).toEqual(['/user/settings/sales', '/user/settings/sales']);
    expect(await open(await signInBrowser(await make.user()))).toEqual(['/user/games', '/user/games']);
    expect((await open(new Browser()))[0]).toBe('/login');
  });

  test('the sign-in page leads to a new password', async () => {
    const browser = new Browser();
    await browser.get('/login');
    expect(browser.page.text).toContain('<a href="/forgot-password">Forgot your password?</a>');
    expect(browser.words).not.toContain('npm start');
  });

  test('an unknown path is a page for browsers, with the navigation of a signed-in user', async () => {
    const browser = new Browser();
    for (const path of [
      '/user/nothing',
      '/user',
      '/user/settings/nothing/at/all',
      '/docs/nothing',
      '/no/such/page',
      '/Login',
      '/favicon.ico',
      '/profile/nothing',
    ]) {
      const { status, text } = await browser.get(path);
      expect({ path, status, words: browser.words }).toMatchObject({
        path,
        status: 404,
        words: expect.stringMatching(/^Page not found Check the URL/),
      });
      expect(text).not.toContain('aria-label="Main"');
      expect(await anonymous.get(path)).toEqual(failure(404, 'invalid api endpoint'));
    }
    const known = await signInBrowser(await make.user());
    expect((await known.get('/user/nothing')).text).toContain('aria-label="Main"');
    const form = { form_token: 'x' };
    expect((await known.post('/user/nothing', form)).status).toBe(404);
    expect((await known.post('/user/settings/account', form)).status).toBe(405);
    // The path of the legacy API contains a key, so its errors are never pages.
    expect((await known.get('/api/1/key/nothing')).text).toBe('{"errors":["invalid api endpoint"]}');
    for (const path of ['/login', '/docs', '/docs/operator', '/user/settings/api-keys']) {
      for (const query of ['', '?return_to=/docs/'])
        expect(await browser.get(`${path}/${query}`)).toMatchObject({
          status: 303,
          location: `${path}${query}`,
        });
      expect(await anonymous.get(`${path}/`)).toEqual(failure(404, 'invalid api endpoint'));
    }
    for (const path of ['//login/', '/login//', '/%5Clogin/', '/no/such/page/'])
      expect((await browser.get(path)).location ?? '/').toMatch(/^\/(?![/\\])/);
  });

  test('the path of a form opens the page that the form is on', async () => {
    const browser = await signInBrowser(await make.user());
    for (const [path, page] of [
      ['/user/settings/account/names', '/user/settings/account'],
      ['/user/settings/account/addresses/remove', '/user/settings/account/addresses'],
      ['/user/settings/account/addresses', '/user/settings/account'],
      ['/user/settings/games/1/publish', '/user/settings/games/1'],
      ['/download/key/claim', '/download/key'],
      ['/download/key/files/1', '/download/key'],
    ]) {
      expect(await browser.get(path!)).toMatchObject({ status: 303, location: page });
      expect(await anonymous.get(path!)).toEqual(failure(405, 'method not allowed'));
    }
    expect((await browser.get('/oauth/token')).status).toBe(405);
  });

  test('keeps the tabs and the search on confirmation and error pages', async () => {
    const user = await make.user();
    await make.game({ owner: user });
    const [key] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [user.id]);
    const browser = await signInBrowser(user);
    for (const [path, status] of [
      [`${KEYS}/${key!.id}/revoke`, 200],
      [`${KEYS}/99999999/revoke`, 404],
      ['/user/oauth?client_id=nobody', 400],
    ] as const) {
      const page = await browser.get(path);
      expect({ path, status: page.status }).toEqual({ path, status });
      expect(page.text).toContain('aria-label="Main"');
      expect(page.text).toContain('role="search"');
    }
    await browser.get('/user/settings/authorized-apps');
    // Tab, title and heading have the same name.
    expect(browser.page.text.match(/Connected apps/g)).toHaveLength(3);
    expect((await browser.get('/user/oauth/device')).text).not.toContain('aria-label="Main"');
  });
});

/** The response to the first request of the page, executed as printed. */
async function pasted(browser: Browser): Promise<unknown> {
  const [, command] = /<textarea id="first-request"[^>]*>\s*([^<]+)</.exec(browser.page.text)!;
  const line = command!.replaceAll('&quot;', '"');
  const { stdout } = await promisify(execFile)('sh', ['-c', line.replace(/^curl /, 'curl -sS ')]);
  return JSON.parse(stdout);
}

describe('apps', () => {
  const APPS = '/user/settings/oauth-apps';

  test('are registered, found, changed and deleted', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    await browser.get(`${APPS}/new`);
    expect(browser.formFields(APPS)).toMatchObject({ redirect_uris: '', 'scope profile:me': 'yes' });
    await browser.submit(APPS, {
      name: '  Score <board>  ',
      redirect_uris: ' https://game.example/cb \r\n\r\nhttp://127.0.0.1/cb\nhttps://game.example/cb',
      'scope collection:view': 'yes',
    });
    const path = browser.page.location!;
    expect(path).toMatch(/^\/user\/settings\/oauth-apps\/[0-9a-f]{32}$/);
    await browser.follow();
    expect(browser.words).toContain('Score <board> was registered.');
    expect(browser.formFields(path)).toMatchObject({
      name: 'Score <board>',
      redirect_uris: 'https://game.example/cb\nhttp://127.0.0.1/cb',
    });
    expect(browser.formFields(path)).not.toHaveProperty('implicit_allowed');

    await browser.submit(path, { name: 'Scoreboard', implicit_allowed: 'yes' });
    await browser.follow();
    expect(browser.words).toContain('Your changes were saved.');
    expect(
      await sql(
        'SELECT name, redirect_uris, scopes, implicit_allowed FROM oauth_applications WHERE user_id = $1',
        [user.id],
      ),
    ).toEqual([
      {
        name: 'Scoreboard',
        redirect_uris: ['https://game.example/cb', 'http://127.0.0.1/cb'],
        scopes: ['profile:me', 'collection:view'],
        implicit_allowed: true,
      },
    ]);

    await browser.get(APPS);
    expect(browser.words).toContain('Scoreboard');
    await browser.get(`${path}/delete`);
    await browser.submit(`${path}/delete`);
    await browser.follow();
    expect(browser.words).toContain('Scoreboard was deleted.');
    expect(browser.words).toContain('You haven’t registered any apps yet.');
  });

  test('report invalid input and keep what was entered', async () => {
    const browser = await signInBrowser(await make.user());
    await browser.get(`${APPS}/new`);
    const { status } = await browser.submit(APPS, { name: '', redirect_uris: 'http://evil.example/"><b>' });
    expect(status).toBe(400);
    expect(browser.words).toContain('Enter a name for the app.');
    expect(browser.words.split('http://evil.example/"><b> must begin with https://')).toHaveLength(2);
    expect(browser.page.text).toContain('id="redirect_uris-problem" role="alert"');
    expect(browser.page.text).toContain('aria-describedby="redirect_help redirect_uris-problem"');
    expect(browser.page.text.match(/role="alert"/g)).toHaveLength(2);
    expect(browser.page.text).not.toContain('<b>');
    expect(browser.formFields(APPS).redirect_uris).toBe('http://evil.example/"><b>');
    // The developer who registers it isn't the person whose profile it is.
    expect(browser.words).toContain('Scopes that it can request See everything on a person’s profile');
    // A consent page would show nothing for this name.
    await browser.submit(APPS, { name: '\u200b\u200b' });
    expect(browser.words).toContain('Enter a name for the app.');
    await browser.submit(APPS, {
      name: 'A',
      redirect_uris: 'http://a.example/ https://b.example/ ftp://c.example/',
    });
    expect(browser.words).toContain('http://a.example/, ftp://c.example/: each must begin with https://');
    expect(browser.page.text.match(/role="alert"/g)).toHaveLength(1);
  });

  test('return 404 if they belong to other users', async () => {
    const { owner, stranger } = await actors();
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes) VALUES ('theirs', $1, 'Theirs', '{https://a.example/}', '{profile}')`,
      [owner.id],
    );
    const browser = await signInBrowser(stranger);
    for (const path of [`${APPS}/theirs`, `${APPS}/theirs/delete`, `${APPS}/no%00thing`])
      expect((await browser.get(path)).status).toBe(404);
    await browser.get(`${APPS}/new`);
    const fields = { ...browser.formFields(APPS), name: 'Mine now', redirect_uris: 'https://evil.example/' };
    expect((await browser.post(`${APPS}/theirs`, fields)).status).toBe(404);
    expect((await browser.post(`${APPS}/theirs/delete`, fields)).status).toBe(404);
    expect(await sql(`SELECT name FROM oauth_applications WHERE client_id = 'theirs'`)).toEqual([
      { name: 'Theirs' },
    ]);
  });
});

describe('collections', () => {
  const COLLECTIONS = '/user/settings/collections';

  test('list owned and administered ones, each with its own profile setting', async () => {
    const { owner, admin, stranger } = await actors();
    const collection = await make.collection({ owner, admins: [admin], title: 'Sea & ships', private: true });
    const path = `${COLLECTIONS}/${collection.id}/on-profile`;
    const browser = await signInBrowser(admin);
    await browser.get(COLLECTIONS);
    expect(browser.words).toContain('Sea & ships Private Admin 0 Not shown Show on profile Sea & ships');
    // The store has no pages in the default settings, so the title isn't a link.
    expect(browser.page.text).not.toContain(`/c/${collection.id}`);
    await browser.submit(path, {}, undefined);
    await browser.get(COLLECTIONS);
    await browser.submit(path, { on: 'yes' });
    await browser.follow();
    expect(browser.words).toContain('“Sea & ships” is now on your profile.');
    expect(browser.words).toContain('Shown');
    expect(
      await sql('SELECT user_id FROM profile_collections WHERE collection_id = $1', [collection.id]),
    ).toEqual([{ user_id: admin.id }]);
    await browser.submit(path, { on: 'yes' });
    await browser.follow();
    await browser.submit(path, { on: 'no' });
    expect(await sql('SELECT FROM profile_collections')).toEqual([]);

    const other = await signInBrowser(stranger);
    await other.get(COLLECTIONS);
    expect(other.words).toContain('You have no collections yet.');
    await other.get(`${KEYS}/new`);
    const { form_token } = other.formFields(KEYS);
    expect((await other.post(path, { form_token: form_token!, on: 'yes' })).status).toBe(404);
    expect(await sql('SELECT FROM profile_collections')).toEqual([]);
  });

  test('begin with the first one for an impossible place in the list', async () => {
    const owner = await make.user();
    await make.collection({ owner, title: 'Only one' });
    const browser = await signInBrowser(owner);
    for (const after of [
      '0',
      'x',
      '2024-02-31 00:00:00+00,1',
      '2024-02-01 00:00:00+00,99999999999999999999',
    ]) {
      await browser.get(`${COLLECTIONS}?${new URLSearchParams({ after }).toString()}`);
      expect([browser.page.status, browser.words]).toEqual([200, expect.stringContaining('Only one')]);
    }
  });
});

describe('expired rows', () => {
  test('are deleted', async () => {
    const user = await make.user();
    await signInBrowser(user);
    await sql(`UPDATE sessions SET expires_at = now() - interval '1 second' WHERE user_id = $1`, [user.id]);
    await sql(`UPDATE api_keys SET expires_at = now() - interval '31 days' WHERE user_id = $1`, [user.id]);
    await theApp().get(ExpiredRows).sweep();
    expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user.id])).toEqual([]);
    expect(await sql('SELECT FROM api_keys WHERE user_id = $1', [user.id])).toEqual([]);
    expect((await sql('SELECT FROM sessions')).length).toBeGreaterThan(0);
  });
});
