import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { MAX_KEPT_ATTEMPTS } from '../../src/operator/webhooks/webhook-attempts.service';
import { MAX_USER_WEBHOOKS } from '../../src/operator/webhooks/webhooks.service';
import { Browser, cookieHeaders, signInBrowser } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { databaseUrl, logged, openApp, theApp, theClock, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { closeReceivers, Receiver, status } from '../support/webhook-receiver';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

const WEBHOOKS = '/user/settings/webhooks';
let seller: Actor;
let game: { id: number; title: string };
let browser: Browser;

beforeAll(async () => {
  seller = await make.user();
  game = await make.game({ owner: seller, title: 'Bright <Harbor>' });
  browser = await signInBrowser(seller);
});
afterEach(async () => {
  closeReceivers();
  await sql('DELETE FROM webhooks');
});

const webhookPath = ({ id }: Receiver) => `${WEBHOOKS}/${id}`;

/** Adds the receiver as a webhook on the page. */
async function added(receiver: Receiver, fields: Record<string, string> = {}, as = browser) {
  await as.get(`${WEBHOOKS}/new`);
  await as.submit(WEBHOOKS, { url: receiver.url, ...fields });
  await as.follow();
  receiver.secret = /whsec_[\w+/]{43}=/.exec(as.page.text)![0];
  receiver.id = (await sql<{ id: number }>('SELECT max(id) AS id FROM webhooks'))[0]!.id;
  return receiver;
}

async function post(path: string, fields: object = {}) {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' };
  const { status, body } = await send('POST', path, { headers, body: JSON.stringify(fields) });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body as { purchase: { id: number } };
}
const order = (game_id: number | number[]) => ({
  game_id,
  email: 'x@example.com',
  currency: 'USD',
  amount: 499,
});
const sold = async (game_id: number | number[], fields = {}) =>
  (await post('/operator/purchases', { ...order(game_id), ...fields })).purchase.id;
const idle = () => until(async () => (await sql('SELECT FROM webhook_deliveries')).length === 0);
const readAttempts = (receiver: Receiver) =>
  sql<{ id: number; outcome: string; response: string }>(
    'SELECT id, outcome, response FROM webhook_attempts WHERE webhook_id = $1 ORDER BY id',
    [receiver.id],
  );
const recorded = (receiver: Receiver, count: number) =>
  until(async () => (await readAttempts(receiver)).length >= count);
/** Makes the next attempt due. */
async function again() {
  await sql('UPDATE webhook_deliveries SET due_at = now()');
  await sql('UPDATE webhooks SET paused_until = NULL');
  theApp().get(WebhookDeliveries).poll();
}

test('a seller adds a webhook, sees its secret once, and is notified of sales and refunds', async () => {
  const receiver = await added(await Receiver.open(status(200, {}, '<b>thanks</b>\n\0you')));
  await browser.get(webhookPath(receiver));
  expect(browser.page.text).not.toContain(receiver.secret);
  expect(browser.words).toContain('No messages have been sent yet.');
  const id = await sold(game.id, { reference: 'order-1' });
  await post(`/operator/purchases/${id}/refund`);
  const messages = await receiver.received(2);
  expect(
    messages.map(({ type, genuine, data }) => [type, genuine, data.id, data.reference]).toSorted(),
  ).toEqual([
    ['purchase.completed', true, id, 'order-1'],
    ['purchase.refunded', true, id, 'order-1'],
  ]);
  await recorded(receiver, 2);
  await browser.get(webhookPath(receiver));
  expect(browser.words).toMatch(
    new RegExp(`Sale ${id} \\d+ \\w+ \\d+ , [\\d:]+ UTC 200 \\d+ ms <b>thanks</b> you Send again`),
  );
  expect(browser.page.text).toContain('&lt;b&gt;thanks');
  expect(browser.words).toMatch(/Games All your games Events Build, Failed build, Sale, Refund of sale/);
  await browser.get(WEBHOOKS);
  expect(browser.words).toMatch(/127\.0\.0\.1:\d+\/hook All your games 200 \d+ \w+ \d+ ?, [\d:]+ UTC 0/);
  // A URL may contain a token.
  expect(browser.page.text).not.toContain('of-the-shop');
});

test('adds a webhook for one game and one event', async () => {
  const other = await make.game({ owner: seller });
  const fields = { game: String(game.id) };
  await browser.get(`${WEBHOOKS}/new`);
  const receiver = await Receiver.open();
  const form = Object.fromEntries(
    Object.entries(browser.formFields(WEBHOOKS)).filter(
      ([name]) => !name.startsWith('event ') || name === 'event purchase.refunded',
    ),
  );
  await browser.post(WEBHOOKS, { ...form, ...fields, url: receiver.url });
  await browser.follow();
  expect(browser.words).toContain('Games Bright <Harbor> Events Refund of sale');
  for (const id of [await sold(other.id), await sold([game.id, other.id])])
    await post(`/operator/purchases/${id}/refund`);
  await idle();
  expect(receiver.messages.map(({ type, data }) => [type, data.game_ids])).toEqual([
    ['purchase.refunded', [game.id, other.id]],
  ]);
});

test.each([
  [{ url: 'ftp://example.com' }, 'Use a URL that starts with https://'],
  [{ url: 'http://example.com' }, 'Use a URL that starts with https://'],
  [{ url: 'https://10.0.0.1/' }, '10.0.0.1 is a private IP address.'],
  [{ url: `https://example.com/${'x'.repeat(500)}` }, 'Use a URL of at most 500 characters'],
  [{ url: 'https://me:pass@example.com/' }, 'Use a URL without a username'],
  [{ url: 'https://example.com/', game: '999999' }, 'Select a game that you can edit.'],
])('reports %j on the form', async (fields, problem) => {
  await browser.get(`${WEBHOOKS}/new`);
  await browser.submit(WEBHOOKS, fields);
  expect(browser.page.status).toBe(400);
  expect(browser.words).toContain(problem);
  expect(browser.words).not.toContain('WEBHOOKS_ALLOW_PRIVATE');
  expect(await sql('SELECT FROM webhooks')).toEqual([]);
});

test('rejects a webhook without an event, beyond the limit, or without a game to edit', async () => {
  await browser.get(`${WEBHOOKS}/new`);
  const { form_token } = browser.formFields(WEBHOOKS);
  await browser.post(WEBHOOKS, { form_token: form_token!, url: 'https://example.com/' });
  expect(browser.words).toContain('Select at least one event.');
  await sql(
    `INSERT INTO webhooks (url, events, user_id, game_id, secret)
     SELECT 'https://example.com/' || n, '{purchase.completed}', $1, 0, '' FROM generate_series(1, $2::int) n`,
    [seller.id, MAX_USER_WEBHOOKS],
  );
  await browser.get(`${WEBHOOKS}/new`);
  await browser.submit(WEBHOOKS, { url: 'https://example.com/' });
  expect(browser.words).toContain(`There are already ${MAX_USER_WEBHOOKS} webhooks, which is the limit.`);
  const player = await signInBrowser(await make.user());
  await player.get(WEBHOOKS);
  expect(player.words).toContain('You can’t edit any games yet.');
  expect((await player.get(`${WEBHOOKS}/new`)).status).toBe(404);
  await player.get('/user/games/redeem');
  const token = player.formFields('/user/games/redeem').form_token!;
  const fields = { form_token: token, url: 'https://example.com/', 'event purchase.completed': 'yes' };
  expect((await player.post(WEBHOOKS, fields)).status).toBe(404);
});

test('sends no more messages to an admin removed from a game, not even pending ones', async () => {
  const admin = await make.user();
  const shared = await make.game({ owner: seller, admins: [admin] });
  const theirs = await signInBrowser(admin);
  const receiver = await added(await Receiver.open(status(500)), {}, theirs);
  const ofOwner = await added(await Receiver.open());
  await sold(game.id);
  await sold(shared.id);
  await recorded(receiver, 1);
  // The failure has paused the receiver, so this message isn't tried yet.
  await sold(shared.id);
  await sql('DELETE FROM game_admins WHERE user_id = $1', [admin.id]);
  receiver.response = status(204);
  await again();
  await idle();
  await sold(shared.id);
  await ofOwner.received(4);
  await idle();
  expect(receiver.messages.map(({ data }) => data.game_ids)).toEqual([[shared.id]]);
  // The former admin can't resend an earlier failed message either.
  const [attempt] = await readAttempts(receiver);
  await theirs.get(webhookPath(receiver));
  expect((await theirs.submit(`${webhookPath(receiver)}/attempts/${attempt!.id}`)).status).toBe(404);
  expect(receiver.messages).toHaveLength(1);
});

test('sends a test message, and resends a delivery with the same ID', async () => {
  const receiver = await added(await Receiver.open(status(503, {}, 'down')));
  await browser.get(webhookPath(receiver));
  await browser.submit(`${webhookPath(receiver)}/test`);
  await browser.follow();
  expect(browser.words).toMatch(/Your receiver responded with 503 \(\d+ ms\)\./);
  expect(browser.words).toMatch(/Test \d+ \w+ \d+ ?, [\d:]+ UTC 503 \d+ ms down/);
  const id = await sold(game.id);
  await receiver.received(2);
  await recorded(receiver, 2);
  receiver.response = status(200);
  await browser.get(webhookPath(receiver));
  expect(browser.words).toContain('Pending messages 1');
  const [, attempt] = await readAttempts(receiver);
  await browser.submit(`${webhookPath(receiver)}/attempts/${attempt!.id}`);
  await browser.follow();
  expect(browser.words).toContain('Your receiver responded with 200');
  // Delivered: no message is pending.
  expect(browser.words).toContain('Pending messages 0');
  const [tested, first, second] = await receiver.received(3);
  expect([tested!.type, tested!.genuine]).toEqual(['webhook.test', true]);
  expect(second).toMatchObject({
    id: first!.id,
    genuine: true,
    type: 'purchase.completed',
    data: first!.data,
  });
  expect(first!.data.id).toBe(id);
  closeReceivers();
  await browser.submit(`${webhookPath(receiver)}/test`);
  await browser.follow();
  expect(browser.words).toContain('Your receiver didn’t respond: ECONNREFUSED');
  // A test can't be resent, because it has no sale.
  const [test] = await readAttempts(receiver);
  await browser.get(webhookPath(receiver));
  expect(() => browser.formFields(`${webhookPath(receiver)}/attempts/${test!.id}`)).toThrow('no form');
});

test(`keeps the last ${MAX_KEPT_ATTEMPTS} attempts`, async () => {
  const receiver = await added(await Receiver.open());
  const form = `${webhookPath(receiver)}/test`;
  for (let i = 0; i < MAX_KEPT_ATTEMPTS + 2; i++) {
    await browser.get(webhookPath(receiver));
    await browser.submit(form);
  }
  expect(await readAttempts(receiver)).toHaveLength(MAX_KEPT_ATTEMPTS);
  await browser.get(webhookPath(receiver));
  expect(browser.words.match(/ Test \d/g)).toHaveLength(MAX_KEPT_ATTEMPTS);
});

test('a receiver that responds with 410 is disabled, until its owner enables it again', async () => {
  const receiver = await added(await Receiver.open(status(410)));
  await sold(game.id);
  await recorded(receiver, 1);
  await until(async () => (await sql('SELECT FROM webhooks WHERE ended_at IS NOT NULL')).length === 1);
  await sold(game.id);
  expect(await sql('SELECT FROM webhook_deliveries')).toEqual([]);
  await browser.get(webhookPath(receiver));
  expect(browser.words).toContain(
    'This webhook was disabled because your receiver responded with 410 Gone. Enable again',
  );
  const enable = `${webhookPath(receiver)}/enable`;
  const fields = browser.formFields(enable);
  const other = await signInBrowser(await make.user());
  await other.get('/user/games');
  const { form_token } = other.formFields('/logout');
  expect((await other.post(enable, { form_token: form_token! })).status).toBe(404);
  receiver.response = status(204);
  await browser.submit(enable);
  await browser.follow();
  expect(browser.words).toContain('The webhook was enabled.');
  expect(browser.words).not.toContain('Enable again');
  const id = await sold(game.id);
  expect((await receiver.received(2))[1]!.data.id).toBe(id);
  // A second click has nothing left to do.
  await browser.post(enable, fields);
  await browser.follow();
  expect(browser.words).not.toContain('The webhook was enabled.');
  const events = () =>
    sql(`SELECT event FROM audit_events WHERE details->>'webhook_id' = $1 ORDER BY id`, [
      String(receiver.id),
    ]);
  await until(async () => (await events()).length === 3);
  expect(await events()).toEqual([
    { event: 'webhook.created' },
    { event: 'webhook.disabled' },
    { event: 'webhook.enabled' },
  ]);
});

test('signs with a rotated secret at once, and deletes a webhook', async () => {
  const receiver = await added(await Receiver.open());
  const before = receiver.secret;
  await browser.get(`${webhookPath(receiver)}/rotate`);
  await browser.submit(`${webhookPath(receiver)}/rotate`);
  await browser.follow();
  receiver.secret = /whsec_[\w+/]{43}=/.exec(browser.page.text)![0];
  expect(receiver.secret).not.toBe(before);
  await sold(game.id);
  expect((await receiver.received(1))[0]!.genuine).toBe(true);
  await browser.get(`${webhookPath(receiver)}/delete`);
  await browser.submit(`${webhookPath(receiver)}/delete`);
  await browser.follow();
  expect(browser.words).toContain('The webhook was deleted.');
  expect((await browser.get(webhookPath(receiver))).status).toBe(404);
  await sold(game.id);
  expect(await sql('SELECT FROM webhook_deliveries')).toEqual([]);
  const events = () =>
    sql(`SELECT event FROM audit_events WHERE user_id = $1 AND details->>'webhook_id' = $2 ORDER BY id`, [
      seller.id,
      String(receiver.id),
    ]);
  await until(async () => (await events()).length === 3);
  expect(await events()).toEqual([
    { event: 'webhook.created' },
    { event: 'webhook.secret_rotated' },
    { event: 'webhook.deleted' },
  ]);
  expect(logged.join('')).not.toMatch(/whsec_|of-the-shop/);
});

test('returns 404 for another user’s webhook and for the store’s own', async () => {
  const receiver = await added(await Receiver.open());
  const [store] = await sql<{ id: number }>(
    `INSERT INTO webhooks (url, events, secret) VALUES ('https://example.com/', '{purchase.completed}', '') RETURNING id`,
  );
  const other = await make.user();
  await make.game({ owner: other });
  const theirs = await signInBrowser(other);
  await theirs.get(WEBHOOKS);
  expect(theirs.words).toContain('You don’t have any webhooks yet.');
  await theirs.get(`${WEBHOOKS}/new`);
  const { form_token } = theirs.formFields(WEBHOOKS);
  for (const id of [receiver.id, store!.id]) {
    for (const path of ['', '/rotate', '/delete'])
      expect((await theirs.get(`${WEBHOOKS}/${id}${path}`)).status).toBe(404);
    for (const path of ['/test', '/rotate', '/delete', '/attempts/1'])
      expect((await theirs.post(`${WEBHOOKS}/${id}${path}`, { form_token: form_token! })).status).toBe(404);
  }
  expect(await sql('SELECT FROM webhooks')).toHaveLength(2);
  expect(receiver.messages).toEqual([]);
});

describe('while receivers don’t respond', () => {
  let app: Awaited<ReturnType<typeof openApp>>;
  beforeAll(async () => {
    app = await openApp({ DATABASE_URL: databaseUrl(), TRUSTED_PROXIES: 'loopback' });
  });
  afterAll(() => app.close());

  /** A seller with a webhook, who sends tests from any IP address. */
  async function tester(receiver: Receiver) {
    const other = await make.user();
    await make.game({ owner: other });
    const base = await app.getUrl();
    const theirs = await signInBrowser(other, () => base);
    const { id } = await added(receiver, {}, theirs);
    const path = `${WEBHOOKS}/${id}`;
    await theirs.get(path);
    const body = new URLSearchParams(theirs.formFields(`${path}/test`));
    return (address: string) =>
      fetch(`${base}${path}/test`, {
        method: 'POST',
        redirect: 'manual',
        headers: { ...cookieHeaders(theirs), 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address },
        body,
      });
  }

  test('tests of a few sellers don’t block those of others', async () => {
    const silent = await Receiver.open(() => undefined);
    const responses: Promise<unknown>[] = [];
    for (let i = 0; i < 8; i++) {
      const send = await tester(silent);
      responses.push(send(`203.0.113.${i}`).catch(() => undefined));
    }
    await silent.received(8);
    const send = await tester(await Receiver.open());
    expect((await send('203.0.113.100')).status).toBe(303);
    closeReceivers();
    await Promise.all(responses);
  });

  test('a seller sends one test at a time, from any IP address', async () => {
    const silent = await Receiver.open(() => undefined);
    const send = await tester(silent);
    const responses = [send('203.0.113.1')];
    await silent.received(1);
    responses.push(send('203.0.113.2'));
    const sendOther = await tester(await Receiver.open());
    expect((await sendOther('203.0.113.2')).status).toBe(303);
    expect(silent.messages).toHaveLength(1);
    closeReceivers();
    expect((await Promise.all(responses)).map((response) => response.status)).toEqual([303, 303]);
  });
});

test('never sends a user’s webhook to a private network, even if the store’s own may', async () => {
  const app = await openApp({
    DATABASE_URL: databaseUrl(),
    WEBHOOKS_ALLOW_PRIVATE: 'true',
    NODE_ENV: 'production',
    PUBLIC_URL: 'https://api.store.example/',
  });
  const base = await app.getUrl();
  const theirs = await signInBrowser(seller, () => base);
  for (const url of ['https://10.0.0.1/', 'http://127.0.0.1/']) {
    await theirs.get(`${WEBHOOKS}/new`);
    await theirs.submit(WEBHOOKS, { url });
    expect(theirs.words).toMatch(/is a private IP address/);
  }
  await app.close();
});

test("exports a user's webhooks, and erases them along with receivers' responses", async () => {
  const person = await make.user({ emails: [{ email: 'quill@example.com', verified: true }] });
  await make.game({ owner: person });
  const theirs = await signInBrowser(person);
  const receiver = await added(await Receiver.open(), {}, theirs);
  await theirs.get(webhookPath(receiver));
  await theirs.submit(`${webhookPath(receiver)}/test`);
  const ofSeller = await added(await Receiver.open(status(200, {}, 'order of quill@example.com')));
  await sold(game.id, { user_id: person.id, email: 'quill@example.com' });
  await recorded(ofSeller, 1);
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const { body } = await send('POST', `/operator/users/${person.id}/export`, { headers });
  const lines = String(body)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; url?: string });
  expect(lines.filter(({ type }) => type.startsWith('webhook'))).toEqual([
    expect.objectContaining({ type: 'webhook', url: receiver.url, user_id: person.id }),
    expect.objectContaining({ type: 'webhook_attempt', event: 'webhook.test', outcome: '204' }),
  ]);
  expect(await post(`/operator/users/${person.id}/erase`)).toMatchObject({ erased: { webhooks: 1 } });
  expect(await sql('SELECT FROM webhooks WHERE user_id = $1', [person.id])).toEqual([]);
  expect(await readAttempts(ofSeller)).toMatchObject([{ outcome: '200', response: null }]);
});

test('shows times of the same clock as the signature', async () => {
  theClock().stop();
  const receiver = await added(await Receiver.open());
  await browser.get(webhookPath(receiver));
  await browser.submit(`${webhookPath(receiver)}/test`);
  await browser.follow();
  expect(browser.words).toContain('Your receiver responded with 204 (0 ms).');
});
