import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { LinksService } from '../../src/users/links/links.service';
import { LinkRequests } from '../../src/users/links/link-requests.service';
import { Audit } from '../../src/audit/audit';
import { BackgroundWriter } from '../../src/platform/database/background-writer';
import {
  Browser,
  signInBrowser,
  type Page,
  PASSWORD,
  withPassword,
  withoutFormToken,
  canSignIn,
} from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, logged, openApp, theApp, useStore } from '../support/app';
import { failure, ok } from '../support/http';
import { holdLocks, untilBlocked } from '../support/locks';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';
import { until } from '../support/time';
import { closeReceivers, Receiver } from '../support/webhook-receiver';
import { operator } from '../support/selling';

useStore({ OPERATOR_TOKEN, SIGN_UP: 'true', STORE_NAME: 'Pier Games' });

const NEW_PASSWORD = 'a brand new password';
let mailer: Receiver;
let user: Actor;
let serial = 0;
let email: string;

beforeAll(async () => {
  mailer = await Receiver.open();
  const webhook = { events: ['link.requested'], game_id: null, url: mailer.url };
  Object.assign(mailer, await theApp().get(WebhooksService).add(webhook));
});
afterAll(closeReceivers);
beforeEach(async () => {
  email = `person${++serial}@example.com`;
  user = await withPassword(await make.user({ emails: [{ email, verified: true }] }));
});

interface Link {
  url: string;
  expires_at: string;
}
const createLink = async (purpose: string, id = user.id) =>
  (await operator.postJson(`/operator/users/${id}/link`, { purpose })).body as Link;
const linkPath = ({ url }: Link) => new URL(url).pathname;

/** The events since the last call. */
async function requested(): Promise<Record<string, unknown>[]> {
  await theApp().get(LinkRequests).flush();
  theApp().get(WebhookDeliveries).poll();
  await until(async () => (await sql('SELECT FROM webhook_deliveries')).length === 0);
  return mailer.messages.splice(0).map(({ type, data }) => {
    expect(type).toBe('link.requested');
    return data;
  });
}

/** The mailer's request for the only event. */
async function sentLink(): Promise<Link> {
  const [event, ...others] = await requested();
  expect(others).toEqual([]);
  return (await operator.postJson('/operator/links', { request_id: event!.request_id })).body as Link;
}

const forget = async (username: string, browser = new Browser()) => {
  await browser.get('/forgot-password');
  return browser.submit('/forgot-password', { username });
};
const signUp = async (fields: object, browser = new Browser()) => {
  await browser.get('/sign-up');
  return browser.submit('/sign-up', {
    email: `new${serial}@example.com`,
    username: `new-${serial}`,
    new_password: NEW_PASSWORD,
    ...fields,
  });
};

describe('a link of the operator', () => {
  test('sets the password once, ends sessions and other links, and opening it changes nothing', async () => {
    const session = await signInBrowser(user);
    const [older, other] = [await createLink('set_password'), await createLink('sign_in')];
    const link = await createLink('set_password');
    expect(link).toEqual({
      url: expect.stringMatching(new RegExp(`^${baseUrl()}/links/[\\w-]{43}$`)) as string,
      expires_at: expect.stringMatching(/Z$/) as string,
    });
    const [stored] = await sql(
      `SELECT to_char((created_at + interval '24 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS expires_at
       FROM account_links WHERE user_id = $1 AND purpose = 'set_password'`,
      [user.id],
    );
    expect(stored).toEqual({ expires_at: link.expires_at });
    const browser = new Browser();
    expect((await browser.get(linkPath(older))).status).toBe(404);
    for (let i = 0; i < 3; i++) await browser.get(linkPath(link));
    expect(Object.fromEntries(browser.page.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex, nofollow',
    });
    expect(browser.page.text.match(/<button(?! type="button")[^>]*>(?!Sign out)/g)).toHaveLength(1);
    await browser.submit(linkPath(link), { new_password: 'short' });
    expect(browser.words).toContain('at least 8 characters');
    await browser.submit(linkPath(link), { new_password: NEW_PASSWORD });
    expect(browser.page.location).toBe('/user/settings');
    expect([await canSignIn(user.username, NEW_PASSWORD), await canSignIn(user.username, PASSWORD)]).toEqual([
      true,
      false,
    ]);
    for (const used of [link, other]) expect((await new Browser().get(linkPath(used))).status).toBe(404);
    expect((await session.get('/user/games')).location).toContain('/login');
    await theApp().get(Audit).flush();
    const events = await sql('SELECT event, details FROM audit_events WHERE user_id = $1 ORDER BY id', [
      user.id,
    ]);
    expect(events).toEqual(
      expect.arrayContaining([
        { event: 'link.created', details: { operator: 'OPERATOR_TOKEN', purpose: 'set_password' } },
        { event: 'user.password_set', details: {} },
      ]),
    );
  });

  test('signs in once, with a new session', async () => {
    const link = await createLink('sign_in');
    const browser = new Browser();
    await browser.get(linkPath(link));
    const planted = [...browser.cookies.values()];
    const form = browser.formFields(linkPath(link));
    await browser.submit(linkPath(link));
    expect(browser.page.location).toBe('/user/settings');
    expect([...browser.cookies.values()]).not.toEqual(planted);
    await browser.get('/user/settings/account');
    expect(browser.page.text).toContain(user.username);
    const other = new Browser();
    other.cookies.set([...browser.cookies.keys()][0]!, planted[0]!);
    expect((await other.post(linkPath(link), form)).status).toBe(404);
    expect((await other.get('/user/games')).location).toContain('/login');
  });

  test('starts no session if the password is changed meanwhile', async () => {
    const links = theApp().get(LinksService);
    const [link, other] = [await createLink('sign_in'), await createLink('set_password')];
    const [thief, owner] = [new Browser(), new Browser()];
    const signIn = links.signIn.bind(links);
    jest.spyOn(links, 'signIn').mockImplementationOnce(async (found) => {
      const result = await signIn(found);
      await owner.get(linkPath(other));
      await owner.submit(linkPath(other), { new_password: NEW_PASSWORD });
      return result;
    });
    await thief.get(linkPath(link));
    await thief.submit(linkPath(link));
    expect([owner.page.status, thief.page.status]).toEqual([303, 403]);
    expect((await thief.get('/user/settings/account')).location).toContain('/login');
    expect((await owner.get('/user/settings/account')).status).toBe(200);
  });

  test('works for one of several concurrent requests', async () => {
    const link = await createLink('sign_in');
    const browsers = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const browser = new Browser();
        await browser.get(linkPath(link));
        return browser;
      }),
    );
    const pages = await Promise.all(browsers.map((browser) => browser.submit(linkPath(link))));
    expect(pages.map(({ status }) => status).filter((status) => status === 303)).toHaveLength(1);
  });

  test('doesn’t deadlock with a change of the password, which ends it', async () => {
    await sql('INSERT INTO user_emails (user_id, email) VALUES ($1, $2)', [user.id, `other-${email}`]);
    await sql(
      `INSERT INTO account_links (token_hash, purpose, user_id, email)
       SELECT sha256(purpose::bytea), purpose, $1, address
       FROM (VALUES ('set_password', NULL), ('verify_email', $2)) link (purpose, address)`,
      [user.id, `other-${email}`],
    );
    const links = theApp().get(LinksService);
    const [setPassword, verify] = await Promise.all(
      ['set_password', 'verify_email'].map((one) => links.find(one)),
    );
    const { query, commit } = await holdLocks(`UPDATE users SET password_hash = NULL WHERE id = ${user.id}`);
    const used = Promise.allSettled([links.setPassword(setPassword!, 'hash'), links.verify(verify!)]);
    await untilBlocked(2);
    await query(`DELETE FROM account_links WHERE user_id = ${user.id}`);
    await commit();
    expect(await used).toEqual([
      { status: 'fulfilled', value: false },
      { status: 'fulfilled', value: false },
    ]);
  });

  test('expires after 24 hours, and is nothing to forms of other sites', async () => {
    const link = await createLink('sign_in');
    const browser = new Browser();
    await browser.get(linkPath(link));
    const form = browser.formFields(linkPath(link));
    expect((await browser.post(linkPath(link), {})).status).toBe(403);
    expect((await browser.post(linkPath(link), form, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    await sql(`UPDATE account_links SET created_at = now() - interval '24 hours'`);
    expect((await browser.get(linkPath(link))).status).toBe(404);
    expect((await browser.post(linkPath(link), form)).status).toBe(404);
  });

  test.each([
    [{ purpose: 'sign_up' }, 400, 'purpose must be one of set_password, sign_in'],
    [{}, 400, 'purpose is required'],
  ])('is rejected for %j', async (fields, status, problem) => {
    expect(await operator.postJson(`/operator/users/${user.id}/link`, fields)).toEqual(
      failure(status, problem),
    );
  });

  test('is only for existing users, and for operators who may manage users', async () => {
    expect(await operator.postJson('/operator/users/4000000/link', { purpose: 'sign_in' })).toEqual(
      failure(404, 'invalid user'),
    );
    await operator.postJson(`/operator/users/${user.id}/erase`, {});
    expect(await operator.postJson(`/operator/users/${user.id}/link`, { purpose: 'sign_in' })).toEqual(
      failure(404, 'invalid user'),
    );
  });

  test('is the same for a repeated Idempotency-Key, and stored nowhere', async () => {
    const headers = { 'idempotency-key': 'link' };
    const first = await operator.postJson(`/operator/users/${user.id}/link`, { purpose: 'sign_in' }, headers);
    expect(
      await operator.postJson(`/operator/users/${user.id}/link`, { purpose: 'sign_in' }, headers),
    ).toEqual(first);
    const token = linkPath(first.body as Link)
      .split('/')
      .at(-1)!;
    const tables = await sql(
      'SELECT row_to_json(t)::text AS row FROM account_links t UNION ALL SELECT answer FROM idempotency_keys',
    );
    expect(JSON.stringify(tables)).not.toContain(token);
    expect((await new Browser().get(linkPath(first.body as Link))).status).toBe(200);
    expect(logged.join('')).not.toContain(token);
  });
});

describe('a requested link', () => {
  test('is announced without a secret, and created once', async () => {
    await forget(user.username.toUpperCase());
    const events = await requested();
    expect(events).toEqual([
      { request_id: expect.any(Number) as number, purpose: 'set_password', user_id: user.id, email },
    ]);
    expect(Object.keys(events[0]!)).toEqual(['request_id', 'purpose', 'user_id', 'email']);
    const { request_id } = events[0]!;
    const response = await operator.postJson('/operator/links', { request_id });
    expect(response).toEqual(
      ok({ url: expect.stringContaining('/links/') as string, expires_at: expect.any(String) as string }),
    );
    expect(await operator.postJson('/operator/links', { request_id })).toEqual(
      failure(409, 'request_id was used'),
    );
    expect(await operator.postJson('/operator/links', { request_id: 4_000_000 })).toEqual(
      failure(404, 'invalid request_id'),
    );
    expect(await operator.postJson('/operator/links', {})).toEqual(failure(400, 'request_id is required'));
    await sql(`UPDATE link_requests SET created_at = now() - interval '24 hours', used_at = NULL`);
    expect(await operator.postJson('/operator/links', { request_id })).toEqual(
      failure(404, 'invalid request_id'),
    );
  });

  test('is one for concurrent requests of the mailer', async () => {
    await forget(email);
    const [{ request_id }] = (await requested()) as [{ request_id: number }];
    const responses = await Promise.all(
      Array.from({ length: 6 }, () => operator.postJson('/operator/links', { request_id })),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test('is announced once in five minutes for an address and purpose, also through several names', async () => {
    await Promise.all([forget(user.username), forget(email), signUp({ email: email.toUpperCase() })]);
    expect(await requested()).toHaveLength(1);
    await forget(email);
    expect(await requested()).toEqual([]);
    await sql(`UPDATE link_requests SET created_at = created_at - interval '5 minutes'`);
    await forget(email);
    expect(await requested()).toHaveLength(1);
  });

  test('goes only to webhooks of the store that name the event', async () => {
    const seller = await make.user({ developer: true });
    const [all, sellers] = [await Receiver.open(), await Receiver.open()];
    const webhooks = theApp().get(WebhooksService);
    const everything = ['purchase.completed', 'purchase.refunded'];
    const ids = [
      await webhooks.add({ events: everything, game_id: null, url: all.url }),
      await webhooks.add({ events: ['link.requested'], game_id: 0, url: sellers.url, user_id: seller.id }),
    ];
    await forget(email);
    expect(await requested()).toHaveLength(1);
    expect([all.messages, sellers.messages]).toEqual([[], []]);
    for (const { id } of ids) await webhooks.remove(id);
  });

  test('is not offered without a mailer: the pages say how to reach the store', async () => {
    await sql('UPDATE webhooks SET ended_at = now() WHERE id = $1', [mailer.id]);
    for (const path of ['/forgot-password', '/sign-up']) {
      const browser = new Browser();
      await browser.get(path);
      expect(browser.words).toContain('Contact Pier Games');
      expect(browser.page.text).not.toContain('<form method="post" action="/');
    }
    await sql('UPDATE webhooks SET ended_at = NULL WHERE id = $1', [mailer.id]);
  });
});

describe('a forgotten password', () => {
  test('gets the same response for every name, and an event only for a verified address', async () => {
    const unverified = await make.user({
      emails: [{ email: `maybe${serial}@example.com`, verified: false }],
    });
    const names = [email, user.username, 'nobody', unverified.username, `maybe${serial}@example.com`, 'x@y'];
    const pages = [];
    for (const name of names) pages.push(withoutFormToken(await forget(name)));
    expect(new Set(pages.map(String)).size).toBe(1);
    expect(await requested()).toEqual([expect.objectContaining({ user_id: user.id, email })]);
  });

  test('is looked up after the response', async () => {
    await forget(email);
    expect(await sql('SELECT FROM link_requests WHERE email = $1', [email])).toEqual([]);
    await requested();
    expect(await sql('SELECT FROM link_requests WHERE email = $1', [email])).toHaveLength(1);
  });

  test('is set with the link, which goes to the primary address or the given one', async () => {
    const second = `a-second${serial}@example.com`;
    await sql('INSERT INTO user_emails (user_id, email, verified) VALUES ($1, $2, true)', [user.id, second]);
    await sql('UPDATE user_emails SET is_primary = true WHERE email = $1', [email]);
    await forget(user.username);
    await forget(second);
    const events = await requested();
    expect(events.map((event) => event.email)).toEqual([email, second]);
    const { body } = await operator.postJson('/operator/links', { request_id: events[0]!.request_id });
    const browser = new Browser();
    await browser.get(linkPath(body as Link));
    await browser.submit(linkPath(body as Link), { new_password: NEW_PASSWORD });
    expect(await canSignIn(second, NEW_PASSWORD)).toBe(true);
  });

  test('takeover: its link and its request end when the account removes the address', async () => {
    const primary = `primary${serial}@example.com`;
    await sql('INSERT INTO user_emails (user_id, email, verified, is_primary) VALUES ($1, $2, true, true)', [
      user.id,
      primary,
    ]);
    const remove = async (address: string) => {
      const browser = await signInBrowser(user);
      await browser.get('/user/settings/account');
      const path = '/user/settings/account/addresses/remove';
      expect((await browser.submit(path, { email: address, sure: 'on' })).status).toBe(303);
    };
    await forget(email);
    const link = await sentLink();
    expect((await new Browser().get(linkPath(link))).status).toBe(200);
    await remove(email);
    const browser = new Browser();
    expect((await browser.get(linkPath(link))).status).toBe(404);
    await browser.get('/login');
    const { form_token } = browser.formFields('/login');
    const form = { form_token: form_token!, new_password: NEW_PASSWORD };
    expect((await browser.post(linkPath(link), form)).status).toBe(404);
    // A mailer that was down asks for the link later.
    await forget(primary);
    const [{ request_id } = {}] = await requested();
    await remove(primary);
    expect(await operator.postJson('/operator/links', { request_id })).toMatchObject(
      failure(404, 'invalid request_id'),
    );
    // A link of the operator wasn't sent to an address of the account.
    expect((await new Browser().get(linkPath(await createLink('set_password')))).status).toBe(200);
    expect(await canSignIn(user.username, PASSWORD)).toBe(true);
  });

  test('returns to the page of the key from which the visitor went to sign in, but not the next time', async () => {
    const { key } = await make.downloadKey({ game: await make.game({ owner: user }) });
    const browser = new Browser();
    await browser.get(`/download/${key}`);
    await browser.submit(`/download/${key}/claim`);
    await browser.get(browser.page.location!);
    const [, path] = /href="(\/forgot-password[^"]*)"/.exec(browser.page.text)!;
    expect(path).not.toContain(key);
    await browser.get(path!);
    await browser.submit('/forgot-password', { username: '' });
    await browser.submit('/forgot-password', { username: user.username });
    const link = await sentLink();
    await browser.get(linkPath(link));
    await browser.submit(linkPath(link), { new_password: NEW_PASSWORD });
    expect(browser.page.location).toBe(`/download/${key}`);
    expect(browser.cookies.has('gamewharf_return_to')).toBe(false);
  });

  test('requested again from elsewhere, it returns to no earlier page', async () => {
    const browser = new Browser();
    await browser.get('/forgot-password?return_to=%2Fuser%2Fgames');
    await browser.submit('/forgot-password', { username: user.username });
    expect(browser.cookies.has('gamewharf_return_to')).toBe(true);
    await forget(user.username, browser);
    expect(browser.cookies.has('gamewharf_return_to')).toBe(false);
    await requested();
  });

  test.each(['', 'x'.repeat(321), 'nul\0'])('rejects the name %j', async (name) => {
    expect((await forget(name)).status).toBe(400);
  });
});

describe('a sign-up', () => {
  test('creates the account when the button of its link is used', async () => {
    const browser = new Browser();
    await signUp({}, browser);
    expect(browser.words).toContain('Check your email');
    const events = await requested();
    const address = `new${serial}@example.com`;
    expect(events).toMatchObject([{ purpose: 'sign_up', user_id: null, email: address }]);
    expect(await sql('SELECT FROM users WHERE username = $1', [`new-${serial}`])).toEqual([]);
    const { body } = await operator.postJson('/operator/links', { request_id: events[0]!.request_id });
    await browser.get(linkPath(body as Link));
    expect(browser.words).toContain(`new-${serial} at Pier Games, with the email address ${address}`);
    await browser.submit(linkPath(body as Link));
    expect(browser.page.location).toBe('/user/settings');
    expect(await canSignIn(address, NEW_PASSWORD)).toBe(true);
    expect(
      await sql(
        'SELECT developer, verified, is_primary FROM users u JOIN user_emails e ON e.user_id = u.id WHERE username = $1',
        [`new-${serial}`],
      ),
    ).toEqual([{ developer: false, verified: true, is_primary: true }]);
  });

  test('returns to the page of the key from which the visitor went to sign in', async () => {
    const { key } = await make.downloadKey({ game: await make.game({ owner: user }) });
    const browser = new Browser();
    await browser.get(`/download/${key}`);
    await browser.submit(`/download/${key}/claim`);
    await browser.get(browser.page.location!);
    const [, path] = /href="(\/sign-up[^"]*)"/.exec(browser.page.text)!;
    expect(path).not.toContain(key);
    await browser.get(path!);
    const fields = { email: `new${serial}@example.com`, username: 'no', new_password: 'short' };
    await browser.submit('/sign-up', fields);
    await browser.submit('/sign-up', { ...fields, username: `new-${serial}`, new_password: NEW_PASSWORD });
    const link = await sentLink();
    const copy = new Map(browser.cookies);
    await browser.get(linkPath(link));
    await browser.submit(linkPath(link));
    expect(browser.page.location).toBe(`/download/${key}`);
    expect([...copy.keys()].filter((name) => !browser.cookies.has(name))).toEqual(['gamewharf_return_to']);
  });

  test('returns to no other site', async () => {
    for (const planted of ['//elsewhere.example', encodeURIComponent('//elsewhere.example'), '%']) {
      const browser = new Browser();
      serial++;
      await signUp({ return_to: '//elsewhere.example' }, browser);
      expect(browser.cookies.has('gamewharf_return_to')).toBe(false);
      browser.cookies.set('gamewharf_return_to', planted);
      const link = await sentLink();
      await browser.get(linkPath(link));
      await browser.submit(linkPath(link));
      expect(browser.page.location).toBe('/user/settings');
    }
  });

  test('returns the same page for the email address of an account, whose owner gets a link to set a password', async () => {
    const pages = [withoutFormToken(await signUp({ email: 'free@example.com', username: `free-${serial}` }))];
    pages.push(withoutFormToken(await signUp({ email, username: `other-${serial}` })));
    expect(pages[0]).toEqual(pages[1]);
    const events = await requested();
    expect(events).toMatchObject([
      { purpose: 'sign_up', user_id: null },
      { purpose: 'set_password', user_id: user.id, email },
    ]);
    expect(await sql('SELECT username, password_hash FROM link_requests WHERE email = $1', [email])).toEqual([
      { username: null, password_hash: null },
    ]);
  });

  test('takeover: a sign-up with the address of another person gives them the account, not its password', async () => {
    const [victim, attacker] = [`victim${serial}@example.com`, new Browser()];
    await signUp({ email: victim, new_password: 'password of the attacker' }, attacker);
    const link = await sentLink();
    const browser = new Browser();
    await browser.get(linkPath(link));
    await browser.submit(linkPath(link));
    expect(browser.page.status).toBe(400);
    await browser.submit(linkPath(link), { new_password: NEW_PASSWORD });
    expect(browser.page.location).toBe('/user/settings');
    expect([
      await canSignIn(victim, 'password of the attacker'),
      await canSignIn(victim, NEW_PASSWORD),
    ]).toEqual([false, true]);
  });

  test.each([
    [{ email: 'nobody' }, 'Enter your email address.'],
    [{ email: 'nobody@erased.invalid' }, 'Enter your email address.'],
    // Mail programs would send these to the address of another person.
    [{ email: 'a,victim@example.com' }, 'Enter your email address.'],
    [{ email: '<victim@example.com>' }, 'Enter your email address.'],
    [{ email: 'victim@example.com(a)' }, 'Enter your email address.'],
    [{ email: 'moc.elpmaxe@\u202emitciv' }, 'Enter your email address.'],
    [{ username: 'two words' }, 'A username must have'],
    [{ username: 'erased-7' }, 'reserved for erased users'],
    [{ new_password: 'short' }, 'at least 8 characters'],
  ])('rejects %j', async (fields, problem) => {
    const browser = new Browser();
    expect((await signUp(fields, browser)).status).toBe(400);
    expect(browser.words).toContain(problem);
    expect(await requested()).toEqual([]);
  });

  test('reports a username that another account has taken in the meantime', async () => {
    const browser = new Browser();
    await signUp({ username: user.username.toUpperCase() }, browser);
    expect(browser.words).toContain('Another account has this username.');
    await signUp({}, browser);
    const link = await sentLink();
    await make.user({ username: `NEW-${serial}` });
    await browser.get(linkPath(link));
    await browser.submit(linkPath(link));
    expect([browser.page.status, browser.words]).toEqual([409, expect.stringContaining('Sign up again')]);
  });

  test('does not exist without the setting', async () => {
    const app = await openApp({ OPERATOR_TOKEN });
    const headers = { accept: 'text/html' };
    expect((await fetch(`${await app.getUrl()}/sign-up`, { headers })).status).toBe(404);
    expect(await (await fetch(`${await app.getUrl()}/login`, { headers })).text()).not.toContain('/sign-up');
  });
});

describe('enumeration', () => {
  const LATER = /^(request_\w+_link|announce_\w+|link_request_email|.*webhook.*)$/;
  const UNIQUE = ['set-cookie', 'date', 'etag', 'x-request-id', 'content-security-policy'];
  /**
   * What a client can observe, and the statements that the response waits for. Events of earlier requests are delivered
   * first: their statements would be recorded, too.
   */
  async function observed(work: () => Promise<Page>) {
    await requested();
    let page: Page | undefined;
    const statements = await recordStatements(async () => (page = await work()));
    const headers = [...page!.headers].filter(([name]) => !UNIQUE.includes(name));
    return {
      page: withoutFormToken(page!),
      headers,
      length: page!.text.length,
      statements: statements.filter((name) => !LATER.test(name)),
    };
  }

  test('a forgotten password of an account sends the same statements and headers', async () => {
    const bare = await make.user();
    const known = await observed(() => forget(email));
    for (const name of [user.username, bare.username, 'nobody', 'nobody@example.com'])
      expect(await observed(() => forget(name))).toEqual(known);
  });

  test('so does a sign-up with the address of an account', async () => {
    const known = await observed(() => signUp({ email }));
    expect(await observed(() => signUp({ email: `free${serial}@example.com` }))).toEqual(known);
  });

  test('so does a sign-in with the name or address of an account', async () => {
    const signIn = (name: string) => () => new Browser().signIn(name, 'not the password');
    const statementsFor = async (name: string) => (await observed(signIn(name))).statements;
    const known = await statementsFor(user.username);
    for (const name of [email, 'nobody', `nobody${serial}@example.com`])
      expect(await statementsFor(name)).toEqual(known);
  });
});

test('requests that the database can’t keep up with fail with 503, whether or not the account exists', async () => {
  const full = jest.spyOn(BackgroundWriter.prototype, 'add').mockReturnValue(false);
  const statuses = [];
  for (const request of [() => forget(email), () => forget('nobody'), () => signUp({})])
    statuses.push((await request()).status);
  full.mockRestore();
  expect(statuses).toEqual([503, 503, 503]);
});

test('unknown links are limited like other failed lookups', async () => {
  const app = await openApp({ RATE_LIMIT: 'misses=3/100s' });
  const link = await createLink('sign_in');
  const fetchStatus = async (path: string) => (await fetch((await app.getUrl()) + path)).status;
  for (let i = 0; i < 3; i++) expect(await fetchStatus(`/links/unknown-${i}`)).toBe(404);
  expect([await fetchStatus('/links/unknown'), await fetchStatus(linkPath(link))]).toEqual([429, 429]);
});

test('an erasure deletes requests and links, those of sign-ups too', async () => {
  const address = `sign-up${serial}@example.com`;
  await forget(email);
  await signUp({ email: address });
  for (const { request_id } of await requested()) await operator.postJson('/operator/links', { request_id });
  await createLink('sign_in');
  const rows = async () => {
    const found = await sql(
      `SELECT email FROM link_requests WHERE email = ANY ($1) UNION ALL SELECT coalesce(email, 'user') FROM account_links WHERE email = ANY ($1) OR user_id = $2`,
      [[email, address], user.id],
    );
    return found.length;
  };
  expect(await rows()).toBe(5);
  await operator.postJson('/operator/people/erase', { email: address });
  expect(await rows()).toBe(3);
  await operator.postJson(`/operator/users/${user.id}/erase`, {});
  expect(await rows()).toBe(0);
});
