import { Audit } from '../../src/audit/audit';
import { IdentitiesService } from '../../src/auth/identities/identities.service';
import { PasswordQueue } from '../../src/auth/sign-in/password-queue';
import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { LinkRequests } from '../../src/users/links/link-requests.service';
import { Browser, signInBrowser, PASSWORD, withPassword, canSignIn } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { openApp, theApp, theClock, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { closeReceivers, Receiver } from '../support/webhook-receiver';

useStore({ OPERATOR_TOKEN, STORE_NAME: 'Pier Games' });

const ACCOUNT = '/user/settings/account';
const NEW_PASSWORD = 'a brand new password';
let mailer: Receiver;
let user: Actor;
let email: string;
let browser: Browser;
let serial = 0;

beforeAll(async () => {
  mailer = await Receiver.open();
  const webhook = { events: ['link.requested'], game_id: null, url: mailer.url };
  Object.assign(mailer, await theApp().get(WebhooksService).add(webhook));
});
afterAll(closeReceivers);
beforeEach(async () => {
  email = `owner${++serial}@example.com`;
  user = await make.user({ emails: [{ email, verified: true }] });
  browser = await signInBrowser(user);
  await browser.get(ACCOUNT);
});

async function requested(): Promise<Record<string, unknown>[]> {
  await theApp().get(LinkRequests).flush();
  theApp().get(WebhookDeliveries).poll();
  await until(async () => (await sql('SELECT FROM webhook_deliveries')).length === 0);
  return mailer.messages.splice(0).map(({ data }) => data);
}
async function createLinkPath(request_id: unknown): Promise<string> {
  const { body } = await send('POST', '/operator/links', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ request_id }),
  });
  return new URL((body as { url: string }).url).pathname;
}
const addresses = () =>
  sql('SELECT email, verified, is_primary FROM user_emails WHERE user_id = $1 ORDER BY email', [user.id]);

test('shows names, email addresses with their state, and sessions with their network', async () => {
  await sql(`INSERT INTO user_emails (user_id, email) VALUES ($1, 'unverified@example.com')`, [user.id]);
  await browser.get(ACCOUNT);
  expect(browser.words).toContain(`${email} Verified`);
  expect(browser.words).toContain('unverified@example.com Not verified');
  expect(browser.words).toMatch(/127\.0\.0\.0\/24 This one/);
  expect(browser.page.text).toContain('href="/user/settings/data"');
  expect((await new Browser().get(ACCOUNT)).location).toContain('/login');
});

test('changes the username and the display name', async () => {
  const names = { username: `renamed-${serial}`, display_name: 'Re <Named>' };
  await browser.submit(`${ACCOUNT}/names`, names);
  await browser.follow();
  expect(browser.words).toContain('Your name was changed.');
  expect(await sql('SELECT username, display_name FROM users WHERE id = $1', [user.id])).toEqual([names]);
  // Other people would see no name.
  await browser.submit(`${ACCOUNT}/names`, { ...names, display_name: '\u200b\u2800' });
  expect(await sql('SELECT display_name FROM users WHERE id = $1', [user.id])).toEqual([
    { display_name: null },
  ]);
  await browser.get(ACCOUNT);
  const other = await make.user();
  for (const [username, problem] of [
    [other.username.toUpperCase(), 'Another account has this username.'],
    ['two words', 'A username must have'],
    ['erased-7', 'reserved'],
  ] as const) {
    await browser.submit(`${ACCOUNT}/names`, { username });
    expect([browser.page.status, browser.words]).toEqual([400, expect.stringContaining(problem)]);
  }
});

test('adds an email address, which a link verifies in a session of the account only', async () => {
  const added = `Second${serial}@example.com`;
  const lower = added.toLowerCase();
  await browser.submit(`${ACCOUNT}/addresses`, { email: added });
  expect(browser.words).toContain('Enter your password.');
  await browser.submit(`${ACCOUNT}/addresses`, { email: added, password: 'wrong password' });
  expect(browser.words).toContain('The password is wrong.');
  await browser.submit(`${ACCOUNT}/addresses`, { email: added, password: PASSWORD });
  await browser.follow();
  expect(browser.words).toContain('We are sending a link');
  const [event] = await requested();
  expect(event).toMatchObject({ purpose: 'verify_email', user_id: user.id, email: lower });
  const path = await createLinkPath(event!.request_id);
  // Takeover: the owner of an address opens the link that a different user requested for it.
  for (const visitor of [new Browser(), await signInBrowser(await make.user())]) {
    await visitor.get(path);
    expect(visitor.words).toContain(`Sign in as ${user.username}`);
    expect(visitor.page.text).not.toContain('Verify email address</button>');
    const form = visitor.page.text.includes('form_token')
      ? /name="form_token" value="([^"]*)"/.exec(visitor.page.text)![1]!
      : '';
    const { status } = await visitor.post(path, { form_token: form });
    expect([303, 403]).toContain(status);
  }
  expect(await addresses()).toContainEqual({ email: lower, verified: false, is_primary: false });
  await browser.get(path);
  await browser.submit(path);
  await browser.follow();
  expect(browser.words).toContain(`Your email address is verified.`);
  // Purchases and password links keep using the imported address.
  expect(await addresses()).toEqual([
    { email, verified: true, is_primary: true },
    { email: lower, verified: true, is_primary: false },
  ]);
  expect((await browser.get(path)).status).toBe(404);
});

test('tells a visitor who is signed in as another user to sign out before verifying an address', async () => {
  await browser.submit(`${ACCOUNT}/addresses`, { email: `link${serial}@example.com`, password: PASSWORD });
  const [event] = await requested();
  const path = await createLinkPath(event!.request_id);
  const other = await make.user();
  const visitor = await signInBrowser(other);
  await visitor.get(path);
  expect(visitor.words).toContain(`You are signed in as ${other.username} . Sign out first`);
  // The sign-in page would only redirect them back.
  expect(visitor.page.text).not.toContain('href="/login');
});

test('an address that was removed or verified in the meantime gets no link, and its link expires', async () => {
  const [removed, verified] = [`removed${serial}@example.com`, `verified${serial}@example.com`];
  await sql('INSERT INTO user_emails (user_id, email) VALUES ($1, $2), ($1, $3)', [
    user.id,
    removed,
    verified,
  ]);
  const request = async (address: string) => {
    await browser.get(ACCOUNT);
    await browser.submit(`${ACCOUNT}/addresses`, { email: address, password: PASSWORD });
    return (await requested())[0]!.request_id;
  };
  const path = await createLinkPath(await request(verified));
  const request_id = await request(removed);
  await sql('DELETE FROM user_emails WHERE email = $1', [removed]);
  const response = await send('POST', '/operator/links', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ request_id }),
  });
  expect(response).toMatchObject(failure(404, 'invalid request_id'));
  expect((await browser.get(path)).status).toBe(200);
  await sql('UPDATE user_emails SET verified = true WHERE email = $1', [verified]);
  expect((await browser.get(path)).status).toBe(404);
});

test('enumeration: an address of another account gets the same response and no event', async () => {
  const taken = `taken${serial}@example.com`;
  await make.user({ emails: [{ email: taken, verified: true }] });
  const [pages, events] = [[] as unknown[], [] as object[]];
  for (const address of [taken, `free${serial}@example.com`]) {
    await browser.get(ACCOUNT);
    await browser.submit(`${ACCOUNT}/addresses`, { email: address, password: PASSWORD });
    await browser.follow();
    pages.push([
      browser.page.status,
      browser.words.replaceAll(address, 'ADDRESS').replace(/\d\d:\d\d:\d\d/g, ''),
    ]);
    events.push(...(await requested()));
    await sql('DELETE FROM user_emails WHERE user_id = $1 AND email = $2', [user.id, address]);
  }
  expect(pages[0]).toEqual(pages[1]);
  expect(events).toMatchObject([{ email: `free${serial}@example.com` }]);
});

test('an address that another account verifies first stays unverified', async () => {
  const contested = `contested${serial}@example.com`;
  await browser.submit(`${ACCOUNT}/addresses`, { email: contested, password: PASSWORD });
  const [event] = await requested();
  const path = await createLinkPath(event!.request_id);
  await make.user({ emails: [{ email: contested, verified: true }] });
  await browser.get(path);
  await browser.submit(path);
  expect(browser.page.status).toBe(404);
  expect(await addresses()).toContainEqual({ email: contested, verified: false, is_primary: false });
});

test('makes a verified address primary, and removes one after a question', async () => {
  await sql(`INSERT INTO user_emails (user_id, email, verified) VALUES ($1, $2, true), ($1, $3, false)`, [
    user.id,
    `b${email}`,
    `c${email}`,
  ]);
  await browser.get(ACCOUNT);
  const form = browser.formFields(`${ACCOUNT}/addresses/primary`);
  for (const one of [email, `b${email}`])
    expect((await browser.post(`${ACCOUNT}/addresses/primary`, { ...form, email: one })).status).toBe(303);
  for (const one of [`c${email}`, 'foreign@example.com'])
    expect((await browser.post(`${ACCOUNT}/addresses/primary`, { ...form, email: one })).status).toBe(404);
  expect((await addresses()).filter(({ is_primary }) => is_primary)).toMatchObject([{ email: `b${email}` }]);
  await browser.post(`${ACCOUNT}/addresses/remove`, { ...form, email });
  expect(browser.words).toContain(`Remove ${email}?`);
  expect(await addresses()).toHaveLength(3);
  await browser.submit(`${ACCOUNT}/addresses/remove`);
  expect(await addresses()).toHaveLength(2);
});

test('has at most 20 email addresses', async () => {
  await sql(
    `INSERT INTO user_emails (user_id, email) SELECT $1, n || '@example.com' FROM generate_series(1, 19) n`,
    [user.id],
  );
  await browser.submit(`${ACCOUNT}/addresses`, { email: 'one-more@example.com', password: PASSWORD });
  expect([browser.page.status, browser.words]).toEqual([400, expect.stringContaining('at most 20')]);
});

test('changing the password needs the current one, and ends other sessions and links', async () => {
  const other = await signInBrowser(user);
  const { body } = await send('POST', `/operator/users/${user.id}/link`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: '{"purpose":"sign_in"}',
  });
  await browser.submit(`${ACCOUNT}/password`, { password: 'wrong password', new_password: NEW_PASSWORD });
  expect([browser.page.status, browser.words]).toEqual([
    403,
    expect.stringContaining('The password is wrong.'),
  ]);
  await browser.submit(`${ACCOUNT}/password`, { password: PASSWORD, new_password: 'short' });
  expect(browser.page.status).toBe(400);
  await browser.submit(`${ACCOUNT}/password`, { password: PASSWORD, new_password: NEW_PASSWORD });
  await browser.follow();
  expect(browser.words).toContain('Your password was changed');
  expect([await canSignIn(user.username, NEW_PASSWORD), await canSignIn(user.username, PASSWORD)]).toEqual([
    true,
    false,
  ]);
  expect((await other.get(ACCOUNT)).location).toContain('/login');
  expect((await new Browser().get(new URL((body as { url: string }).url).pathname)).status).toBe(404);
});

test('takeover: the password of another account that takes the username at that moment confirms nothing', async () => {
  const { username } = user;
  const attacker = await withPassword(await make.user());
  const identities = theApp().get(IdentitiesService);
  jest.spyOn(identities, 'hasPassword').mockImplementationOnce(async () => {
    await sql(`UPDATE users SET username = 'old-' || username WHERE id = $1`, [user.id]);
    await sql('UPDATE users SET username = $2 WHERE id = $1', [attacker.id, username]);
    return true;
  });
  await browser.submit(`${ACCOUNT}/password`, {
    password: PASSWORD,
    new_password: NEW_PASSWORD,
  });
  expect([browser.page.status, browser.words]).toEqual([
    403,
    expect.stringContaining('The password is wrong.'),
  ]);
  expect(await canSignIn(`old-${username}`, PASSWORD)).toBe(true);
});

test('a sign-in with the old password that is under way ends, too', async () => {
  const passwords = theApp().get(PasswordQueue);
  const matches = passwords.matches.bind(passwords);
  const thief = new Browser();
  jest.spyOn(passwords, 'matches').mockImplementationOnce(async (...given) => {
    const isRight = await matches(...given);
    await browser.submit(`${ACCOUNT}/password`, { password: PASSWORD, new_password: NEW_PASSWORD });
    return isRight;
  });
  await thief.signIn(user.username);
  expect([browser.page.status, thief.page.status]).toEqual([303, 403]);
  expect(thief.words).toContain('Your password was changed');
  expect((await thief.get(ACCOUNT)).location).toContain('/login');
  expect((await browser.get(ACCOUNT)).status).toBe(200);
});

test('takeover: a change that was confirmed with the old password doesn’t replace a newer one', async () => {
  const passwords = theApp().get(PasswordQueue);
  const hash = passwords.hash.bind(passwords);
  const owner = await signInBrowser(user);
  await owner.get(ACCOUNT);
  jest.spyOn(passwords, 'hash').mockImplementationOnce(async (...given) => {
    await owner.submit(`${ACCOUNT}/password`, { password: PASSWORD, new_password: NEW_PASSWORD });
    return hash(...given);
  });
  await browser.submit(`${ACCOUNT}/password`, { password: PASSWORD, new_password: 'the thief’s password' });
  expect([owner.page.status, browser.page.status]).toEqual([303, 403]);
  expect(browser.words).toContain('Your session ended a moment ago');
  expect(await canSignIn(user.username, NEW_PASSWORD)).toBe(true);
});

test('an account without a password sets one soon after the sign-in only', async () => {
  await sql('UPDATE users SET password_hash = NULL WHERE id = $1', [user.id]);
  await sql(`UPDATE sessions SET created_at = now() - interval '6 minutes' WHERE user_id = $1`, [user.id]);
  await browser.get(ACCOUNT);
  await browser.submit(`${ACCOUNT}/password`, { new_password: NEW_PASSWORD });
  expect(browser.words).toContain('within five minutes');
  await sql(`UPDATE sessions SET created_at = now() WHERE user_id = $1`, [user.id]);
  await browser.submit(`${ACCOUNT}/password`, { new_password: NEW_PASSWORD });
  expect(browser.page.status).toBe(303);
  expect(await canSignIn(user.username, NEW_PASSWORD)).toBe(true);
});

test('signs out everywhere', async () => {
  const other = await signInBrowser(user);
  await browser.submit(`${ACCOUNT}/sessions/end`);
  expect(browser.page.location).toBe('/login');
  for (const one of [browser, other]) expect((await one.get(ACCOUNT)).location).toContain('/login');
});

test('forms of other sites are rejected', async () => {
  const form = browser.formFields(`${ACCOUNT}/names`);
  for (const path of [
    'names',
    'addresses',
    'addresses/remove',
    'addresses/primary',
    'password',
    'sessions/end',
    'erase',
  ]) {
    expect((await browser.post(`${ACCOUNT}/${path}`, {})).status).toBe(403);
    expect((await browser.post(`${ACCOUNT}/${path}`, form, { 'sec-fetch-site': 'cross-site' })).status).toBe(
      403,
    );
  }
  expect(await canSignIn(user.username, PASSWORD)).toBe(true);
});

describe('erasure', () => {
  const PATH = `${ACCOUNT}/erase`;

  test('takes the password and then a second step, and leaves no personal data', async () => {
    await browser.get(PATH);
    await browser.submit(PATH, { password: 'wrong password' });
    expect([browser.page.status, browser.words]).toEqual([
      403,
      expect.stringContaining('The password is wrong.'),
    ]);
    await browser.submit(PATH, { password: PASSWORD });
    expect(browser.words).toContain(`Erase the account ${user.username}?`);
    expect(await sql('SELECT username FROM users WHERE id = $1', [user.id])).toEqual([
      { username: user.username },
    ]);
    await browser.submit(PATH);
    expect(browser.page.status).toBe(303);
    // The page stays the same when it is reloaded.
    for (const path of [browser.page.location!, browser.page.location!]) {
      await browser.get(path);
      expect(browser.words).toContain('Your account was erased');
    }
    expect(await sql('SELECT username, password_hash FROM users WHERE id = $1', [user.id])).toEqual([
      { username: `erased-${user.id}`, password_hash: null },
    ]);
    expect(await addresses()).toEqual([]);
    expect((await browser.get(ACCOUNT)).location).toContain('/login');
    await theApp().get(Audit).flush();
    expect(
      await sql(`SELECT FROM audit_events WHERE event = 'user.erased' AND user_id = $1`, [user.id]),
    ).toHaveLength(1);
  });

  test('does not accept a second step that is forged, expired or of another session', async () => {
    await browser.get(PATH);
    await browser.submit(PATH, { password: PASSWORD });
    const form = browser.formFields(PATH);
    const other = await signInBrowser(user);
    await other.get(ACCOUNT);
    const { form_token } = other.formFields(`${ACCOUNT}/names`);
    await other.post(PATH, { ...form, form_token: form_token! });
    expect(other.page.status).toBe(400);
    await browser.post(PATH, { ...form, until: '9999999999999' });
    expect(browser.page.status).toBe(400);
    theClock().advance(5 * 60_000 + 1);
    await browser.post(PATH, form);
    expect(browser.page.status).toBe(400);
    expect(await canSignIn(user.username, PASSWORD)).toBe(true);
  });

  test('does not exist without the setting, nor where people sign in elsewhere', async () => {
    for (const more of [
      { SELF_ERASURE: 'false' },
      { TRUSTED_IDENTITY_HEADER: 'X-User', TRUSTED_PROXIES: 'loopback' },
    ]) {
      const app = await openApp(more);
      const base = await app.getUrl();
      const one = new Browser({ 'x-user': user.username }, () => base);
      if ('SELF_ERASURE' in more) {
        await withPassword(user);
        await one.signIn(user.username);
      }
      await one.get(ACCOUNT);
      expect(one.page.status).toBe(200);
      expect(one.page.text).not.toContain(PATH);
      expect((await one.get(PATH)).status).toBe(404);
    }
  });
});
