import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { decodeJwt, SignJWT, UnsecuredJWT, generateKeyPair } from 'jose';
import { Browser, signInBrowser, PASSWORD, withPassword } from '../support/browser';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  FakeProvider,
  type Person,
  RealProvider,
  signInAt,
} from '../support/identity-providers';
import { type Environment, logged, openApp, theClock, useStore } from '../support/app';
import { make } from '../support/make';
import { holdLocks, untilBlocked } from '../support/locks';
import { sql } from '../support/sql';

const real = new RealProvider();
const fake = new FakeProvider();
const byProvider = { OIDC_CLIENT_ID: CLIENT_ID, OIDC_CLIENT_SECRET: CLIENT_SECRET, OIDC_NAME: 'Keyring' };
const environment: Environment = { ...byProvider, OIDC_SIGN_UP: 'true' };
beforeAll(async () => {
  await Promise.all([real.start(), fake.start()]);
  environment.OIDC_ISSUER = real.issuer;
});
useStore(environment);
afterAll(async () => {
  real.stop();
  await fake.stop();
});
afterEach(async () => {
  fake.reset();
  await sql('DELETE FROM attempts');
});

const IDENTITIES = '/user/settings/identities';
const ACCOUNT = '/user/settings/account';
let people = 0;
const person = (more: Partial<Person> = {}): Person => {
  const n = ++people;
  return {
    sub: `subject-${n}`,
    email: `person-${n}@example.com`,
    email_verified: true,
    preferred_username: `Person ${n}`,
    ...more,
  };
};

/** Signs in with the provider, in this browser or a new one. */
async function signInAs(who: Person | null, browser = new Browser(), from = '/login/provider') {
  await real.signsIn(who);
  await browser.get(from);
  await browser.get(await signInAt(browser.page.location!), { 'sec-fetch-site': 'cross-site' });
  return browser;
}

const readLinkedUsers = (sub: string) =>
  sql<{ user_id: number; username: string; label: string }>(
    `SELECT i.user_id, u.username, i.label FROM identities i JOIN users u ON u.id = i.user_id WHERE i.subject = $1`,
    [sub],
  );
const signedInAs = async (browser: Browser) =>
  /<span class="who">([^<]*)</.exec((await browser.get('/user/settings/collections')).text)?.[1];

const newestEvent = () =>
  JSON.parse(logged.filter((line) => line.includes('"audit":true')).at(-1)!) as Record<string, unknown>;

describe('sign-in with a provider', () => {
  test('creates an account for a verified address, and signs in to it from then on', async () => {
    const who = person({ preferred_username: 'Zoë of the Hills' });
    const browser = await signInAs(who);
    expect(browser.page.location).toBe('/user/settings');
    const [user] = await readLinkedUsers(who.sub);
    expect(user).toMatchObject({ username: 'Zoe-of-the-Hills', label: 'Zoë of the Hills' });
    expect(await signedInAs(browser)).toBe('Zoe-of-the-Hills');
    expect(
      await sql('SELECT email, verified, is_primary FROM user_emails WHERE user_id = $1', [user!.user_id]),
    ).toEqual([{ email: who.email, verified: true, is_primary: true }]);
    // Neither the name nor the address identifies the person.
    const again = await signInAs({ ...who, email: 'new@example.com', preferred_username: 'renamed' });
    expect(await signedInAs(again)).toBe('Zoe-of-the-Hills');
    expect(await readLinkedUsers(who.sub)).toHaveLength(1);
    expect(newestEvent()).toMatchObject({
      event: 'user.signed_in',
      user_id: user!.user_id,
      identity_id: expect.any(Number) as number,
    });
  });

  test('gives usernames that are valid and unique', async () => {
    const names = [];
    for (const preferred_username of [
      'bramble',
      'Bramble',
      '***',
      'erased-7',
      'mail@example.com',
      undefined,
    ]) {
      const who = person({ preferred_username });
      await signInAs(who);
      names.push((await readLinkedUsers(who.sub))[0]!.username);
    }
    expect(names[0]).toBe('bramble');
    expect(names[1]).toMatch(/^Bramble-\d+$/);
    expect(names[2]).toBe('player');
    expect(names[3]).toMatch(/^player-\d+$/);
    expect(names[4]).toBe('mail');
    expect(names[5]).toMatch(/^player-\d+$/);
  });

  test('returns to the page that needed the sign-in, and to no other site', async () => {
    const who = person();
    await signInAs(who);
    const back = '/login/provider?return_to=%2Fuser%2Fsettings%2Fcollections';
    expect((await signInAs(who, new Browser(), back)).page.location).toBe('/user/settings/collections');
    for (const target of ['https://evil.example', '//evil.example', '/\\evil.example', '/.//evil.example']) {
      const from = `/login/provider?return_to=${encodeURIComponent(target)}`;
      expect((await signInAs(who, new Browser(), from)).page.location).toBe('/user/settings');
    }
  });

  test('has no key in a URL on the way to the provider, back, or to another try', async () => {
    const browser = new Browser();
    await browser.get('/login?return_to=%2Fdownload%2FSECRET');
    const [, from] = /href="(\/login\/provider[^"]*)"/.exec(browser.page.text)!;
    expect(from).toMatch(/\?return_to=[\w-]{16}$/);
    await signInAs(null, browser, from);
    const [, again] = /href="(\/login\?[^"]*)"/.exec(browser.page.text)!;
    expect(again).toMatch(/\?return_to=[\w-]{16}$/);
    expect((await signInAs(person(), browser, from)).page.location).toBe('/download/SECRET');
    expect((await browser.get(again!)).location).toBe('/download/SECRET');
  });

  test('says that the person canceled', async () => {
    const browser = await signInAs(null);
    expect(browser.page.status).toBe(403);
    expect(browser.words).toContain('You canceled the sign-in with Keyring.');
    expect(browser.words).toContain('Try again');
  });

  test('the button is on the sign-in page, which keeps the form', async () => {
    const { text } = await new Browser().get('/login?return_to=%2Fuser%2Fgames');
    expect(text).toContain('href="/login/provider?return_to=%2Fuser%2Fgames"');
    expect(text).toContain('name="password"');
  });

  test('a sign-in starts a new session, so a planted one is of no use', async () => {
    const browser = new Browser();
    await browser.get('/login/provider');
    const planted = browser.cookies.get('gamewharf_session');
    await signInAs(person(), browser);
    expect(browser.cookies.get('gamewharf_session')).not.toBe(planted);
    const thief = new Browser();
    thief.cookies.set('gamewharf_session', planted!);
    expect((await thief.get('/user/settings/collections')).location).toContain('/login');
  });
});

describe('takeover', () => {
  test('an unverified email address neither creates nor connects an account', async () => {
    const victim = await make.user({ emails: [{ email: 'victim@example.com', verified: true }] });
    for (const email_verified of [false, undefined, 'true' as unknown as boolean]) {
      const who = person({ email: 'victim@example.com', email_verified });
      const browser = await signInAs(who);
      expect(browser.page.status).toBe(403);
      expect(browser.words).toContain('hasn’t verified an email address');
      expect(await readLinkedUsers(who.sub)).toEqual([]);
    }
    expect(await sql('SELECT FROM identities WHERE user_id = $1', [victim.id])).toEqual([]);
  });

  test('a verified email address of an existing account only leads to instructions to sign in and connect', async () => {
    const victim = await make.user({ emails: [{ email: 'known@example.com', verified: true }] });
    const who = person({ email: 'Known@Example.com' });
    const browser = await signInAs(who);
    expect(browser.page.status).toBe(403);
    expect(browser.words).toContain('already exists');
    expect(browser.words).toContain('sign in to it once without Keyring, and connect it');
    expect(await readLinkedUsers(who.sub)).toEqual([]);
    expect(await sql('SELECT FROM identities WHERE user_id = $1', [victim.id])).toEqual([]);
  });

  test('a different subject with the same email address is a different person', async () => {
    const first = person({ email: 'recycled@example.com' });
    await signInAs(first);
    const second = person({ email: 'recycled@example.com' });
    const browser = await signInAs(second);
    expect(browser.page.status).toBe(403);
    expect(await readLinkedUsers(second.sub)).toEqual([]);
    expect(await readLinkedUsers(first.sub)).toHaveLength(1);
  });

  test('the same subject at a different issuer is unknown', async () => {
    const who = person();
    await signInAs(who);
    const { user_id } = (await readLinkedUsers(who.sub))[0]!;
    await sql('UPDATE identities SET issuer = $2 WHERE user_id = $1', [user_id, 'https://other.example']);
    const browser = await signInAs(who);
    expect(browser.page.status).toBe(403);
    expect(browser.words).toContain('already exists');
  });

  test('connecting an account needs the password of the signed-in user', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    const who = person();
    await signInAs(who, browser, `${IDENTITIES}/connect`);
    expect(browser.page.location).toBe(IDENTITIES);
    expect(await readLinkedUsers(who.sub)).toEqual([]);
    await browser.follow();
    expect(browser.words).toContain(`You signed in at Keyring as ${who.preferred_username}`);
    await browser.submit(IDENTITIES, { password: 'not this one' });
    expect([browser.page.status, browser.words]).toEqual([403, expect.stringContaining('wrong')]);
    expect(await readLinkedUsers(who.sub)).toEqual([]);
    await browser.submit(IDENTITIES, { password: PASSWORD });
    await browser.follow();
    expect(browser.words).toContain('Your Keyring account is connected.');
    expect(await readLinkedUsers(who.sub)).toMatchObject([{ user_id: user.id }]);
    expect(newestEvent()).toMatchObject({ event: 'identity.connected', user_id: user.id });
    expect(await signedInAs(await signInAs(who))).toBe(user.username);
  });

  test('the cookies of a different browser are rejected, because they belong to its session', async () => {
    const who = person();
    await real.signsIn(who);
    const attacker = new Browser();
    await attacker.get('/login/provider');
    const callback = await signInAt(attacker.page.location!);
    // A link to the attacker's callback doesn't sign in the victim.
    const victim = new Browser();
    await victim.get(callback, { 'sec-fetch-site': 'cross-site' });
    expect(victim.page.status).toBe(403);
    expect(victim.words).toContain('began in another browser');
    await victim.get('/login/provider');
    victim.cookies.set('gamewharf_provider_request', attacker.cookies.get('gamewharf_provider_request')!);
    await victim.get(callback);
    expect(victim.page.status).toBe(403);
    // An account that waits for its confirmation can't be moved to another session, either.
    const [mine, theirs] = [await signInBrowser(await make.user()), await signInBrowser(await make.user())];
    await signInAs(who, mine, `${IDENTITIES}/connect`);
    theirs.cookies.set('gamewharf_provider_account', mine.cookies.get('gamewharf_provider_account')!);
    expect((await theirs.get(IDENTITIES)).text).not.toContain('Connect this account?');
    await theirs.post(IDENTITIES, {
      form_token: /name="form_token" value="([^"]*)"/.exec(theirs.page.text)![1]!,
      password: PASSWORD,
    });
    await theirs.follow();
    expect(theirs.words).toContain('This has expired.');
    expect(await readLinkedUsers(who.sub)).toEqual([]);
  });

  test('a response is rejected after the user has signed out or in as a different user', async () => {
    const who = person();
    await real.signsIn(who);
    const browser = await signInBrowser(await make.user());
    await browser.get(`${IDENTITIES}/connect`);
    const callback = await signInAt(browser.page.location!);
    const request = browser.cookies.get('gamewharf_provider_request')!;
    const other = await withPassword(await make.user());
    browser.cookies.delete('gamewharf_session');
    await browser.signIn(other.username);
    browser.cookies.set('gamewharf_provider_request', request);
    await browser.get(callback);
    expect(browser.page.status).toBe(403);
    expect(await readLinkedUsers(who.sub)).toEqual([]);
  });
});

describe('connected providers', () => {
  test('an account that is connected already can’t be connected to another user', async () => {
    const who = person();
    await signInAs(who);
    const browser = await signInBrowser(await make.user());
    await signInAs(who, browser, `${IDENTITIES}/connect`);
    await browser.follow();
    await browser.submit(IDENTITIES, { password: PASSWORD });
    await browser.follow();
    expect(browser.words).toContain('This account is already connected.');
  });

  test('is disconnected, unless it is the last way in', async () => {
    const who = person();
    const browser = await signInAs(who);
    const { user_id } = (await readLinkedUsers(who.sub))[0]!;
    const [{ id } = { id: 0 }] = await sql<{ id: number }>('SELECT id FROM identities WHERE user_id = $1', [
      user_id,
    ]);
    await browser.get(IDENTITIES);
    expect(browser.words).toContain('Your only way to sign in');
    const form_token = /name="form_token" value="([^"]*)"/.exec(browser.page.text)![1]!;
    await browser.post(`${IDENTITIES}/${id}/disconnect`, { form_token });
    await browser.follow();
    expect(browser.words).toContain('only way to sign in');
    expect(await readLinkedUsers(who.sub)).toHaveLength(1);
    // Without a password, a second identity is confirmed by a sign-in a moment ago.
    const second = person();
    await signInAs(second, browser, `${IDENTITIES}/connect`);
    await sql(`UPDATE sessions SET created_at = now() - interval '6 minutes' WHERE user_id = $1`, [user_id]);
    await browser.follow();
    expect(browser.words).toContain('within the last five minutes');
    await sql(`UPDATE sessions SET created_at = now() WHERE user_id = $1`, [user_id]);
    await browser.get(IDENTITIES);
    await browser.submit(IDENTITIES, {}, 'Connect');
    await browser.follow();
    expect(browser.words).toContain('is connected.');
    // Of two requests at once, one fails: it would remove the last way in.
    const ids = await sql<{ id: number }>('SELECT id FROM identities WHERE user_id = $1', [user_id]);
    const [a, b] = [new Browser(), new Browser()];
    for (const one of [a, b]) for (const [name, value] of browser.cookies) one.cookies.set(name, value);
    await Promise.all([
      a.post(`${IDENTITIES}/${ids[0]!.id}/disconnect`, { form_token }),
      b.post(`${IDENTITIES}/${ids[1]!.id}/disconnect`, { form_token }),
    ]);
    expect(await sql('SELECT FROM identities WHERE user_id = $1', [user_id])).toHaveLength(1);
    expect(newestEvent()).toMatchObject({ event: 'identity.disconnected', user_id });
  });

  test('a slash after the host of OIDC_ISSUER doesn’t matter', async () => {
    const app = await openApp({ ...environment, OIDC_ISSUER: `${real.issuer}/` });
    const user = await make.user();
    const subjects = [person().sub, person().sub];
    for (const subject of subjects)
      await sql('INSERT INTO identities (issuer, subject, user_id) VALUES ($1, $2, $3)', [
        real.issuer,
        subject,
        user.id,
      ]);
    const url = await app.getUrl();
    const browser = await signInBrowser(user, () => url);
    await sql('UPDATE users SET password_hash = NULL WHERE id = $1', [user.id]);
    await browser.get(IDENTITIES);
    expect(browser.words).not.toContain('Your only way to sign in');
    expect(browser.words).not.toContain(real.issuer);
    const [{ id } = { id: 0 }] = await sql<{ id: number }>(
      'SELECT id FROM identities WHERE subject = $1',
      subjects.slice(1),
    );
    await browser.submit(`${IDENTITIES}/${id}/disconnect`);
    expect(await readLinkedUsers(subjects[1]!)).toEqual([]);
    await app.close();
  });

  test('an identity of another user is not disconnected', async () => {
    const who = person();
    await signInAs(who);
    const [{ id } = { id: 0 }] = await sql<{ id: number }>('SELECT id FROM identities WHERE subject = $1', [
      who.sub,
    ]);
    const browser = await signInBrowser(await make.user());
    await browser.get(IDENTITIES);
    const form_token = /name="form_token" value="([^"]*)"/.exec(browser.page.text)![1]!;
    await browser.post(`${IDENTITIES}/${id}/disconnect`, { form_token });
    expect(await readLinkedUsers(who.sub)).toHaveLength(1);
  });
});

test('takeover: a connection is rejected if a new password ends its session', async () => {
  const user = await make.user();
  const browser = await signInBrowser(user);
  const who = person();
  await signInAs(who, browser, `${IDENTITIES}/connect`);
  await browser.follow();
  const { query, commit } = await holdLocks(
    `UPDATE users SET password_hash = password_hash WHERE id = ${user.id}`,
  );
  const connecting = browser.submit(IDENTITIES, { password: PASSWORD }, 'Connect');
  await untilBlocked();
  await query(`DELETE FROM sessions WHERE user_id = ${user.id}`);
  await commit();
  expect((await connecting).status).toBe(403);
  expect(await readLinkedUsers(who.sub)).toEqual([]);
});

describe('an erasure that ends first', () => {
  /** Until the returned function is called, requests that lock the user wait for an erasure. */
  const eraseAccount = (user_id: number) =>
    holdLocks(`
      SELECT FROM users WHERE id = ${user_id} FOR UPDATE;
      UPDATE users SET username = 'erased-${user_id}', password_hash = NULL WHERE id = ${user_id}`);

  test('rejects a sign-in that has found the identity', async () => {
    const who = person();
    await signInAs(who);
    const [{ user_id } = { user_id: 0 }] = await readLinkedUsers(who.sub);
    await sql('DELETE FROM sessions WHERE user_id = $1', [user_id]);
    const { commit } = await eraseAccount(user_id);
    const signingIn = signInAs(who);
    await untilBlocked();
    await commit();
    const browser = await signingIn;
    expect([browser.page.status, browser.words]).toEqual([403, expect.stringContaining('was erased')]);
    expect(await sql('SELECT FROM sessions WHERE user_id = $1', [user_id])).toEqual([]);
  });

  test('rejects a connection', async () => {
    const user = await make.user();
    const browser = await signInBrowser(user);
    const who = person();
    await signInAs(who, browser, `${IDENTITIES}/connect`);
    await browser.follow();
    // The sign-in confirms the change.
    await sql('UPDATE users SET password_hash = NULL WHERE id = $1', [user.id]);
    await browser.get(IDENTITIES);
    const { commit } = await eraseAccount(user.id);
    const connecting = browser.submit(IDENTITIES, {}, 'Connect');
    await untilBlocked();
    await commit();
    expect((await connecting).status).toBe(403);
    expect(await readLinkedUsers(who.sub)).toEqual([]);
  });
});

describe('sign-out', () => {
  test('continues at the provider, with the ID token as the hint', async () => {
    const who = person();
    const browser = await signInAs(who);
    await browser.get('/user/settings/collections');
    expect(browser.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' ${real.issuer}`,
    );
    await browser.submit('/logout');
    const url = new URL(browser.page.location!);
    expect(url.origin).toBe(real.issuer);
    expect(url.searchParams.get('post_logout_redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/logout$/);
    expect(decodeJwt(url.searchParams.get('id_token_hint')!)).toMatchObject({ sub: who.sub });
    await browser.get('/logout');
    expect(browser.words).toContain('You are signed out here.');
    expect((await browser.get('/user/settings/collections')).location).toContain('/login');
  });

  test('ends a session with a password only here', async () => {
    const browser = await signInBrowser(await make.user());
    await browser.get('/user/settings/collections');
    expect((await browser.submit('/logout')).location).toBe('/logout');
  });
});

describe('OIDC_ONLY', () => {
  let base: string;
  beforeAll(async () => {
    const app = await openApp({
      ...environment,
      OIDC_ISSUER: real.issuer,
      OIDC_ONLY: 'true',
      SIGN_UP: 'true',
    });
    base = await app.getUrl();
  });

  test('the sign-in page is the provider, and passwords are not accepted', async () => {
    const browser = new Browser({}, () => base);
    expect((await browser.get('/login')).location).toContain(`${real.issuer}/auth?`);
    const user = await withPassword(await make.user());
    const form_token = 'x';
    const { headers } = await browser.post('/login', {
      form_token,
      username: user.username,
      password: PASSWORD,
    });
    expect(headers.get('set-cookie')).toBeNull();
    expect((await signInAs(person(), browser)).page.location).toBe('/user/settings');
  });

  test('a stored password is not asked for: changes are confirmed by signing in again at the provider', async () => {
    const who = person();
    const browser = await signInAs(who, new Browser({}, () => base));
    const [{ user_id } = { user_id: 0 }] = await readLinkedUsers(who.sub);
    await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [user_id, 'not checked']);
    await browser.get(ACCOUNT);
    expect(browser.page.text).not.toContain('type="password"');
    const form_token = /name="form_token" value="([^"]*)"/.exec(browser.page.text)![1]!;
    const stored = { form_token, new_password: PASSWORD };
    expect((await browser.post(`${ACCOUNT}/password`, stored)).status).toBe(404);
    const steps = [`${ACCOUNT}/erase`, '/user/settings/data'];
    const statuses = async () => {
      const found = [];
      for (const path of steps) {
        await browser.get(path);
        expect(browser.page.text).not.toContain('type="password"');
        found.push((await browser.submit(path)).status);
      }
      return found;
    };
    expect(await statuses()).toEqual([200, 200]);
    await sql(`UPDATE sessions SET created_at = now() - interval '6 minutes' WHERE user_id = $1`, [user_id]);
    expect(await statuses()).toEqual([403, 403]);
    await browser.get(`${ACCOUNT}/erase`);
    const again = /href="(\/login\/provider\?[^"]*)"/.exec(browser.page.text)![1]!.replaceAll('&amp;', '&');
    await signInAs(person(), browser, again);
    expect(browser.words).toContain('isn’t connected to your account here');
    expect(await statuses()).toEqual([403, 403]);
    await signInAs(who, browser, again);
    expect(browser.page.location).toBe(`${ACCOUNT}/erase`);
    expect(await statuses()).toEqual([200, 200]);
    await browser.get(again);
    expect(browser.page.location).toContain('prompt=login');
  });

  test.each(['/setup', '/sign-up', '/forgot-password'])('%s does not exist', async (path) => {
    const browser = new Browser({}, () => base);
    expect((await browser.get(path)).status).toBe(404);
    const cookie = 'A'.repeat(43);
    browser.cookies.set('gamewharf_session', cookie);
    const form_token = createHmac('sha256', cookie).update('form').digest('base64url');
    const form = { form_token, username: 'someone', email: 'someone@example.com', new_password: PASSWORD };
    expect((await browser.post(path, form)).status).toBe(404);
  });
});

describe('a provider that lies', () => {
  let base: string;
  const open = async (more: Environment = {}) => {
    const app = await openApp({ ...environment, OIDC_ISSUER: fake.issuer, ...more });
    return app.getUrl();
  };
  beforeAll(async () => {
    base = await open();
  });

  /** The response of the service to this callback. */
  async function finish(changes: Record<string, string | undefined> = {}, at = base) {
    const browser = new Browser({}, () => at);
    await browser.get('/login/provider');
    await browser.get(fake.callback(browser.page.location!, changes));
    return browser;
  }
  const rejected = async (changes: Record<string, string | undefined> = {}, at = base) => {
    const browser = await finish(changes, at);
    expect([browser.page.status, browser.words]).toEqual([403, expect.stringContaining('isn’t valid')]);
  };
  const accepted = async (at = base) => {
    const { page, words } = await finish({}, at);
    // The signature and all claims are valid; only the account doesn't exist.
    expect([page.status, words]).toEqual([403, expect.stringContaining('hasn’t verified an email address')]);
  };

  test('a valid response is accepted', () => accepted());

  test('requests a code with PKCE, a state and a nonce', async () => {
    const browser = new Browser({}, () => base);
    const { searchParams } = new URL((await browser.get('/login/provider')).location!);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: CLIENT_ID,
      response_type: 'code',
      redirect_uri: `${base}/login/callback`,
      scope: 'openid email profile',
      state: expect.stringMatching(/^[\w-]{43}$/) as string,
      nonce: expect.stringMatching(/^[\w-]{43}$/) as string,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/) as string,
      code_challenge_method: 'S256',
    });
  });

  test.each<[string, Record<string, unknown>]>([
    ['another issuer', { iss: 'https://evil.example' }],
    ['another audience', { aud: 'another-client' }],
    ['several audiences without azp', { aud: [CLIENT_ID, 'another-client'] }],
    ['azp of another client', { aud: [CLIENT_ID, 'another-client'], azp: 'another-client' }],
    ['azp of another client with one audience', { azp: 'another-client' }],
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['an expiry in the past', { exp: 1_700_000_000 }],
    ['no expiry', { exp: undefined }],
    ['no subject', { sub: undefined }],
    ['an empty subject', { sub: '' }],
    ['a subject of 256 characters', { sub: 'x'.repeat(256) }],
    ['a subject that can’t be stored', { sub: 'nul\0' }],
  ])('rejects an ID token with %s', async (_, changes) => {
    fake.claims = (claims) => ({ ...claims, ...changes });
    await rejected();
  });

  test.each<[string, () => NonNullable<FakeProvider['sign']>]>([
    [
      'of another key',
      () => async (claims) => {
        const { privateKey } = await generateKeyPair('RS256');
        return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: fake.kid }).sign(privateKey);
      },
    ],
    ['that is missing', () => (claims) => Promise.resolve(new UnsecuredJWT(claims).encode())],
    [
      'by the client secret',
      () => (claims) =>
        new SignJWT(claims)
          .setProtectedHeader({ alg: 'HS256' })
          .sign(new TextEncoder().encode(CLIENT_SECRET)),
    ],
  ])('rejects an ID token with a signature %s', async (_, sign) => {
    fake.sign = sign();
    await rejected();
  });

  test('rejects a changed state, another issuer in the response, and none', async () => {
    await rejected({ state: 'another' });
    await rejected({ state: undefined });
    // Mix-up: the response of another provider (RFC 9207).
    await rejected({ iss: 'https://evil.example' });
    await rejected({ iss: undefined });
  });

  test('uses a state once, for ten minutes', async () => {
    const browser = new Browser({}, () => base);
    await browser.get('/login/provider');
    const callback = fake.callback(browser.page.location!);
    const cookie = browser.cookies.get('gamewharf_provider_request')!;
    await browser.get(callback);
    expect(browser.words).toContain('hasn’t verified');
    await browser.get(callback);
    expect(browser.words).toContain('has expired');
    browser.cookies.set('gamewharf_provider_request', cookie);
    theClock().advance(600_001);
    await browser.get(callback);
    expect(browser.words).toContain('has expired');
  });

  test('takeover: an address of the ID token is not verified by what the user info says about another one', async () => {
    fake.metadata = { userinfo_endpoint: `${fake.issuer}/userinfo` };
    const at = await open();
    const victim = 'unverified-at-provider@example.com';
    fake.claims = (claims) => ({ ...claims, sub: 'two-sources', email: victim });
    fake.responds = (path, res) => {
      if (path !== '/userinfo') return false;
      const about = { sub: 'two-sources', email: 'own@example.com', email_verified: true };
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify(about));
      return true;
    };
    await accepted(at);
    expect(fake.requests).toContain('/userinfo');
    expect(await sql('SELECT FROM user_emails WHERE email = $1', [victim])).toEqual([]);
    // Without an address in the ID token, the user info is used.
    fake.claims = (claims) => ({ ...claims, sub: 'two-sources' });
    expect((await finish({}, at)).page.status).toBe(303);
    expect(await sql(`SELECT verified FROM user_emails WHERE email = 'own@example.com'`)).toEqual([
      { verified: true },
    ]);
  });

  test('takeover: an address of the user info is not verified by what the ID token says about none', async () => {
    fake.metadata = { userinfo_endpoint: `${fake.issuer}/userinfo` };
    const at = await open();
    const victim = 'unverified-in-user-info@example.com';
    fake.claims = (claims) => ({ ...claims, sub: 'no-address', email_verified: true });
    fake.responds = (path, res) => {
      if (path !== '/userinfo') return false;
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify({ sub: 'no-address', email: victim }));
      return true;
    };
    await accepted(at);
    expect(fake.requests).toContain('/userinfo');
    expect(await sql('SELECT FROM user_emails WHERE email = $1', [victim])).toEqual([]);
  });

  test('names and addresses that can’t be stored are as good as none', async () => {
    const claims = {
      sub: 'odd',
      email: 'odd@example.com',
      email_verified: true,
      preferred_username: 'nul\0',
    };
    fake.claims = (usual) => ({ ...usual, ...claims, email: 'nul\0@example.com' });
    await accepted();
    fake.claims = (usual) => ({ ...usual, ...claims });
    expect((await finish()).page.status).toBe(303);
    expect((await readLinkedUsers('odd'))[0]!.username).toMatch(/^player/);
  });

  test('the user info of another subject is rejected', async () => {
    fake.metadata = { userinfo_endpoint: `${fake.issuer}/userinfo` };
    const at = await open();
    fake.responds = (path, res) => {
      if (path !== '/userinfo') return false;
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify({ sub: 'another', email: 'another@example.com', email_verified: true }));
      return true;
    };
    const { page } = await finish({}, at);
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(await sql(`SELECT FROM user_emails WHERE email = 'another@example.com'`)).toEqual([]);
  });

  test('fetches the keys once, and not again for each unknown key', async () => {
    await accepted();
    fake.requests = [];
    await accepted();
    fake.sign = async (claims) => {
      const { privateKey } = await generateKeyPair('RS256');
      return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'unknown' }).sign(privateKey);
    };
    for (let i = 0; i < 3; i++) await rejected();
    expect(new Set(fake.requests)).toEqual(new Set(['/token']));
  });

  test('only the button returns 503 while the provider is down', async () => {
    const at = await open();
    fake.responds = (_path, res) => {
      res.statusCode = 500;
      res.end();
      return true;
    };
    const browser = new Browser({}, () => at);
    const { status, headers } = await browser.get('/login/provider');
    expect([status, headers.get('retry-after')]).toEqual([503, expect.any(String)]);
    expect((await browser.get('/login')).status).toBe(200);
    const user = await withPassword(await make.user());
    expect((await browser.signIn(user.username)).status).toBe(303);
    // The service recovers without a restart.
    fake.reset();
    await accepted(at);
    // The provider is down between the two steps.
    const half = new Browser({}, () => at);
    await half.get('/login/provider');
    const callback = fake.callback(half.page.location!);
    fake.responds = (_path, res) => {
      res.statusCode = 502;
      res.end();
      return true;
    };
    await half.get(callback);
    expect(half.page.status).toBe(503);
  });

  test.each<[string, (res: ServerResponse) => void]>([
    [
      'rejects the secret of the service',
      (res) => {
        res.writeHead(401, { 'Content-Type': 'application/json', 'WWW-Authenticate': 'Basic realm="x"' });
        res.end('{"error":"invalid_client"}');
      },
    ],
    [
      'closes the connection in the middle of a response',
      (res) => {
        res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100 });
        res.write('{', () => res.destroy());
      },
    ],
    [
      'sends more than a megabyte',
      (res) => {
        res.setHeader('Content-Type', 'application/json');
        res.end(`${' '.repeat(1_000_000)}{}`);
      },
    ],
  ])('returns 503 if it %s', async (_, respond) => {
    fake.responds = (path, res) => {
      if (path !== '/token') return false;
      respond(res);
      return true;
    };
    expect((await finish()).page.status).toBe(503);
  });

  test('the log has the reason, so that an operator can correct the settings', async () => {
    const before = logged.length;
    fake.claims = (claims) => ({ ...claims, aud: 'another-client' });
    await rejected();
    expect(logged.slice(before).join()).toContain('unexpected JWT \\"aud\\" (audience) claim value');
  });

  test('makes the sign-in page return 503 while it is down, with OIDC_ONLY', async () => {
    const at = await open({ OIDC_ONLY: 'true' });
    fake.responds = (_path, res) => {
      res.statusCode = 500;
      res.end();
      return true;
    };
    expect((await new Browser({}, () => at).get('/login')).status).toBe(503);
  });

  test.each<[string, object]>([
    ['of another issuer', { issuer: 'https://evil.example' }],
    ['without an authorization endpoint', { authorization_endpoint: undefined }],
  ])('a metadata document %s is a 503', async (_, changes) => {
    const at = await open();
    fake.metadata = changes;
    expect((await new Browser({}, () => at).get('/login/provider')).status).toBe(503);
  });

  test('no secret and no token is in the log', () => {
    const text = logged.join('\n');
    expect(text).not.toContain(CLIENT_SECRET);
    expect(text).not.toContain('eyJ');
    expect(text).not.toContain('a-code');
  });
});

test('the routes of a provider do not exist if none is configured', async () => {
  const app = await openApp({ OIDC_CLIENT_ID: '', OIDC_ISSUER: '' });
  const base = await app.getUrl();
  const browser = new Browser({}, () => base);
  for (const path of ['/login/provider', '/login/callback?code=x&state=y'])
    expect((await browser.get(path)).status).toBe(404);
  const user = await withPassword(await make.user());
  await browser.signIn(user.username);
  expect((await browser.get(IDENTITIES)).status).toBe(404);
});
