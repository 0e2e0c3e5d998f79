import { createHmac } from 'node:crypto';
import { getServers, setServers } from 'node:dns';
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { Command } from 'commander';
import { EntityManager } from 'typeorm';
import { AppModule } from '../../src/app.module';
import { Settings } from '../../src/platform/config/settings';
import { Database } from '../../src/platform/database/database';
import { Events } from '../../src/events/events';
import { ERASED_ADDRESS } from '../../src/auth/accounts/erased-users';
import { createLogger } from '../../src/platform/observability/logger';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { SaleRequest } from '../../src/purchases/sales/sale.dto';
import { SalesService } from '../../src/purchases/sales/sales.service';
import { isPublicAddress } from '../../src/operator/webhooks/public-address';
import { MAX_PENDING, WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { DELIVERY_TIMEOUT_MS } from '../../src/operator/webhooks/send';
import { addCommands } from '../../src/commands/program';
import { Webhook } from '../../src/operator/webhooks/webhook.entity';
import { metric } from '../support/metric';
import { importLines, OPERATOR_TOKEN } from '../support/importing';
import { purchase } from '../support/records';
import { readExamples } from '../support/page-examples';
import { freePort } from '../../src/dev/embedded/server';
import { recordStatements } from '../support/statements';
import { type Actor } from '../support/actor';
import { baseUrl, databaseUrl, logged, openApp, PEPPER, theApp, theClock, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import {
  type Responding,
  closeReceivers,
  type Message,
  ok,
  Receiver,
  status,
} from '../support/webhook-receiver';

useStore({ OPERATOR_TOKEN });

/** Opens a receiver, and adds it as a webhook. */
async function added(response: Responding = ok, ...options: string[]): Promise<Receiver> {
  const receiver = await Receiver.open(response);
  receiver.secret = (await webhooks('add', receiver.url, ...options)).at(-1)!;
  receiver.id = await newest();
  return receiver;
}

const newest = async () => (await sql<{ id: number }>('SELECT max(id) AS id FROM webhooks'))[0]!.id;

const programs: ChildProcess[] = [];
let owner: Actor;
let game: { id: number; slug: string };
let other: { id: number };
const hints: string[] = [];

beforeAll(async () => {
  owner = await make.user({ developer: true });
  [game, other] = [await make.game({ owner }), await make.game({ owner })];
});
afterEach(async () => {
  closeReceivers();
  for (const program of programs.splice(0)) program.kill();
  await sql('DELETE FROM webhooks');
});

async function webhooks(...words: string[]): Promise<string[]> {
  const printed: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
  const hint = jest.spyOn(console, 'error').mockImplementation((line: string) => void hints.push(line));
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), ['webhooks']);
  for (const command of program.commands.flatMap(({ commands }) => commands))
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  try {
    await program.parseAsync(['webhooks', ...words], { from: 'user' });
    return printed.flatMap((text) => text.split('\n'));
  } catch (error) {
    return [(error as Error).message];
  } finally {
    log.mockRestore();
    hint.mockRestore();
  }
}

async function post(path: string, fields: object, headers = {}) {
  const { status, body } = await send('POST', path, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(fields),
  });
  return { status, body: body as { purchase: { id: number } } };
}
const order = (fields: object = {}) => ({
  game_id: game.id,
  email: 'somebody@example.com',
  currency: 'USD',
  amount: 499,
  ...fields,
});
async function sold(fields: object = {}, headers = {}): Promise<number> {
  const { status, body } = await post('/operator/purchases', order(fields), headers);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.purchase.id;
}
const refund = (id: number) => post(`/operator/purchases/${id}/refund`, {});

const deliveries = (app = theApp()) => app.get(WebhookDeliveries);
/** Makes the next attempt due. */
async function again(app = theApp()): Promise<void> {
  await sql('UPDATE webhook_deliveries SET due_at = now()');
  await sql('UPDATE webhooks SET paused_until = NULL');
  deliveries(app).wake();
}
const results = async () =>
  Object.fromEntries(
    (await metric('gamewharf_webhook_deliveries_total')).map(({ labels, value }) => [labels.result, value]),
  ) as Record<string, number>;
const idle = (receiver: Receiver) => until(async () => (await receiver.waiting).length === 0);

describe('gamewharf webhooks', () => {
  test.each([
    ['nothing', 'Use a URL of at most 500 characters, such as https://example.com/hook.'],
    [`https://example.com/${'x'.repeat(500)}`, 'Use a URL of at most 500 characters'],
    ['http://example.com/', 'Use a URL that starts with https://'],
    ['http://10.0.0.1/', 'Use a URL that starts with https://'],
    ['ftp://127.0.0.1/', 'Use a URL that starts with https://'],
    ['https://me:secret@example.com/', 'Use a URL without a username, a password or a fragment.'],
    ['https://example.com/#part', 'Use a URL without a username, a password or a fragment.'],
    ['https://0x7f.1/', '127.0.0.1 is a private IP address. WEBHOOKS_ALLOW_PRIVATE allows it.'],
    ['https://localhost/', 'localhost is a private IP address'],
    ['https://[fd00::1]/', 'fd00::1 is a private IP address'],
    ['https://[::ffff:10.0.0.1]/', '::ffff:a00:1 is a private IP address'],
  ])('add rejects %s', async (url, problem) => {
    expect((await webhooks('add', url))[0]).toContain(problem);
    expect(await sql('SELECT FROM webhooks')).toEqual([]);
  });

  test.each([
    [
      ['add', 'https://example.com/', '--events', 'sale'],
      /The events are (\S+, )+purchase\.completed, purchase\.refunded[,.]/,
    ],
    [['add', 'https://example.com/', '--game', 'no/game'], "Game no/game doesn't exist."],
    [
      ['add', 'https://example.com/', '--game', 'no/game/at/all'],
      'Invalid game "no/game/at/all". Use owner/slug, such as ash-beetle/brave-arcade, or an ID.',
    ],
    [['remove', '7'], "Webhook 7 doesn't exist."],
    [['remove', '-'], 'Use a numeric ID.'],
    [['test', '7'], "Webhook 7 doesn't exist."],
  ])('rejects %j', async (words, problem) => {
    expect((await webhooks(...words))[0]).toMatch(problem);
  });

  test('adds up to twenty, displays each secret once, stores it encrypted, and lists and deletes webhooks', async () => {
    const secrets = [];
    for (let i = 1; i <= 20; i++)
      secrets.push((await webhooks('add', `https://example.com/${i}?key=of-mine`))[0]!);
    expect(await webhooks('add', 'https://example.com/21')).toEqual([
      'There are already 20 webhooks, which is the limit. Delete one that is no longer used.',
    ]);
    for (const secret of secrets) expect(secret).toMatch(/^whsec_[\w+/]{43}=$/);
    expect(new Set(secrets).size).toBe(20);
    const stored = (await sql<{ secret: Buffer }>('SELECT secret FROM webhooks ORDER BY id')).map(
      ({ secret }) => secret,
    );
    const texts = secrets.map((secret) => Buffer.from(secret.slice(6), 'base64'));
    for (const [i, secret] of stored.entries()) expect(secret.includes(texts[i]!)).toBe(false);
    const lines = await webhooks('list');
    expect(lines).toHaveLength(21);
    const [, id] =
      /^(\d+) +https:\/\/example\.com\/1\?\.\.\. +- +(?:\S+ )*purchase\.completed purchase\.refunded (?:\S+ )* *all /.exec(
        lines[1]!,
      )!;
    expect(await webhooks('remove', id!)).toEqual([`Removed webhook ${id}.`]);
    expect(await webhooks('list')).toHaveLength(20);
    await until(
      async () => (await sql(`SELECT FROM audit_events WHERE event = 'webhook.deleted'`)).length > 0,
    );
    const events = await sql(
      `SELECT event, details FROM audit_events WHERE event LIKE 'webhook.%' AND details->>'webhook_id' = $1 ORDER BY id`,
      [id],
    );
    expect(events).toEqual([
      { event: 'webhook.created', details: { webhook_id: Number(id), host: 'example.com' } },
      { event: 'webhook.deleted', details: { webhook_id: Number(id) } },
    ]);
    expect(logged.join('')).not.toMatch(/whsec_|of-mine/);
    await sql(`UPDATE webhooks SET user_id = $1 WHERE url LIKE '%/20?%'`, [owner.id]);
    expect((await webhooks('list')).at(-1)).toContain(` ${owner.username} `);
    expect(await webhooks('remove')).toEqual(['Specify either an ID or --all.']);
    expect(await webhooks('remove', '--all')).toEqual(['Removed 19 webhooks.']);
    await webhooks('add', 'https://example.com/1');
    expect(await webhooks('remove', '--all')).toEqual(['Removed 1 webhook.']);
    expect(await sql('SELECT FROM webhooks')).toEqual([]);
  });

  test("sends a test message, prints the receiver's response and records it as the last attempt", async () => {
    const receiver = await added(status(202));
    expect(await webhooks('test', String(receiver.id))).toEqual(['The receiver responded with 202.']);
    const [message] = await receiver.received(1);
    expect(message).toMatchObject({ genuine: true, type: 'webhook.test', data: {} });
    const last = () => sql('SELECT last_outcome FROM webhooks WHERE last_at IS NOT NULL');
    expect(await last()).toEqual([{ last_outcome: '202' }]);
    receiver.close();
    expect(await webhooks('test', String(receiver.id))).toEqual(['No response: ECONNREFUSED.']);
    expect(await last()).toEqual([{ last_outcome: 'ECONNREFUSED' }]);
  });
});

test('a sale is sent once, signed and with its buyer and its keys', async () => {
  const receiver = await added();
  const id = await sold({
    reference: 'order-7',
    created_at: '2026-03-04T10:00:00Z',
    game_id: [other.id, game.id],
  });
  const [message] = await receiver.received(1);
  expect(message).toEqual({
    id: expect.stringMatching(/^msg_[0-9a-f-]{36}$/) as string,
    genuine: true,
    type: 'purchase.completed',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
    data: {
      email: expect.any(String) as string,
      download_keys: (
        await sql<{ id: number; game_id: number; key: string }>(
          'SELECT id, game_id, key FROM download_keys WHERE purchase_id = $1 ORDER BY game_id',
          [id],
        )
      ).map((one) => ({ ...one, url: `${baseUrl()}/download/${one.key}` })),
      id,
      game_ids: [game.id, other.id],
      status: 'complete',
      amount: 499,
      currency: 'USD',
      source: 'store',
      created_at: '2026-03-04T10:00:00Z',
      reference: 'order-7',
    },
    headers: expect.objectContaining({
      'content-type': 'application/json',
      'user-agent': 'Gamewharf-Webhooks',
    }) as object,
  });
  await idle(receiver);
  // A repeated request sells nothing.
  expect(
    await sold({
      reference: 'order-7',
      created_at: '2026-03-04T10:00:00Z',
      game_id: [game.id, other.id],
    }),
  ).toBe(id);
  await again();
  expect(receiver.messages).toHaveLength(1);
  expect((await webhooks('list'))[1]).toMatch(/ 204 +0 +-$/);
});

test('a refund is sent once', async () => {
  const receiver = await added();
  const id = await sold();
  await refund(id);
  await refund(id);
  const messages = await receiver.received(2);
  await idle(receiver);
  expect(messages.map(({ type, data }) => [type, data.id, data.status]).toSorted()).toEqual([
    ['purchase.completed', id, 'complete'],
    ['purchase.refunded', id, 'refunded'],
  ]);
});

test('a webhook gets only its events and its game', async () => {
  const refunds = await added(ok, '--events', 'purchase.refunded');
  const ofGame = await added(ok, '--game', `${owner.username.toUpperCase()}/${game.slug}`);
  const all = await added();
  const [one, two] = [await sold({ game_id: other.id }), await sold({ game_id: [game.id, other.id] })];
  await refund(one);
  await all.received(3);
  const listEvents = (receiver: Receiver) =>
    receiver.messages.map(({ type, data }) => `${type} ${data.id}`).toSorted();
  await until(async () => (await sql('SELECT FROM webhook_deliveries')).length === 0);
  expect(listEvents(refunds)).toEqual([`purchase.refunded ${one}`]);
  expect(listEvents(ofGame)).toEqual([`purchase.completed ${two}`]);
});

test('sends nothing for rolled back, rejected and imported sales, and once for a repeated Idempotency-Key', async () => {
  const receiver = await added();
  expect(await post('/operator/purchases', order({ game_id: 999_999 }))).toEqual(
    failure(404, 'invalid game'),
  );
  await sold({ amount: Number.MAX_SAFE_INTEGER, currency: 'GBP', source: 'most' });
  // The transaction fails after the statement of the purchase.
  expect((await post('/operator/purchases', order({ currency: 'GBP' }))).status).toBe(400);
  await importLines(purchase(900_001, { game_id: game.id }));
  const key = { 'idempotency-key': 'once' };
  expect(await sold({ source: 'repeated' }, key)).toBe(await sold({ source: 'repeated' }, key));
  await receiver.received(2);
  await idle(receiver);
  expect(receiver.messages.map(({ data }) => String(data.source)).toSorted()).toEqual(['most', 'repeated']);
});

test('a sale sends no extra statements without webhooks', async () => {
  // The statement that claims deliveries proves nothing: it is also sent after those of earlier tests.
  const announced = jest.spyOn(theApp().get(Events), 'announced');
  const names = await recordStatements(() => sold());
  expect(announced).not.toHaveBeenCalled();
  announced.mockRestore();
  expect(names).not.toContain('announce_complete');
  expect(names).toContain('sell');
});

const INTERIM = 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(1000);

/** Responses that are retried, with the outcome in the list and the receiver's behavior. */
const FAILURES: [string, string, Responding][] = [
  ['responses 500', '500', status(500)],
  ['redirects', '302', status(302, { location: 'http://127.0.0.1:1/' })],
  ['resets the connection', 'ECONNRESET', (res) => res.destroy()],
  [
    'switches protocols',
    'no response',
    (res) => res.socket!.end('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  ],
  [
    'floods with interim responses',
    'no response',
    ({ socket }) => {
      const more = () => !socket!.destroyed && socket!.write(INTERIM, () => setImmediate(more));
      more();
    },
  ],
  ['sends half a head', 'HPE_INVALID|ECONNRESET', (res) => res.socket!.end('HTTP/1.1 204 No')],
];

test.each(FAILURES)(
  'a receiver that %s gets the message again with the same ID',
  async (_what, outcome, response) => {
    const receiver = await added((res, attempt) => (attempt < 3 ? response(res, attempt) : ok(res, attempt)));
    const { failed } = await results();
    await sold();
    for (const attempt of [1, 2]) {
      await receiver.received(attempt);
      await until(async () => (await results()).failed === failed! + attempt);
      await until(async () => new RegExp(` (${outcome})\\S* +1 +-$`).test((await webhooks('list'))[1]!));
      expect(await receiver.waiting).toMatchObject([{ attempts: attempt, later: true }]);
      await again();
    }
    await receiver.received(3);
    await idle(receiver);
    expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(1);
    expect(receiver.messages.every(({ genuine }) => genuine)).toBe(true);
  },
);

const inSeconds = (seconds: number) => new Date(theClock().now() + seconds * 1000).toUTCString();

/** Seconds from the failed attempt to the next one; the default first delay is 9 to 11. */
test.each<[string, number, () => object, [least: number, most: number]]>([
  ['a delay', 503, () => ({ 'retry-after': '100' }), [100, 100]],
  ['a delay with a 429', 429, () => ({ 'retry-after': '100' }), [100, 100]],
  ['a date', 503, () => ({ 'retry-after': inSeconds(200) }), [199, 200]],
  ['less than the default delay', 503, () => ({ 'retry-after': '0' }), [9, 11]],
  ['a date in the past', 429, () => ({ 'retry-after': inSeconds(-500) }), [9, 11]],
  ['more than twelve hours', 503, () => ({ 'retry-after': '999999999' }), [43_200, 43_200]],
  ['a date years ahead', 503, () => ({ 'retry-after': 'Fri, 31 Dec 2100 23:59:59 GMT' }), [43_200, 43_200]],
  ['neither a number nor a date', 503, () => ({ 'retry-after': 'soon' }), [9, 11]],
  ['a year', 503, () => ({ 'retry-after': '2100-01-01' }), [9, 11]],
  ['too many digits', 503, () => ({ 'retry-after': '9'.repeat(400) }), [9, 11]],
  ['two values', 503, () => ({ 'retry-after': ['100', '200'] }), [100, 100]],
  ['none', 503, () => ({}), [9, 11]],
  ['a delay with another status', 500, () => ({ 'retry-after': '100' }), [9, 11]],
])('the next attempt after %s with %d', async (_what, code, headers, [least, most]) => {
  theClock().stop();
  const receiver = await added(status(code, headers()));
  await sold();
  await until(async () => (await webhooks('list'))[1]!.includes(` ${code} `));
  const [row] = await sql<{ seconds: number }>(
    `SELECT extract(epoch FROM d.due_at - w.last_at)::float8 AS seconds
     FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.id = $1`,
    [receiver.id],
  );
  expect(row!.seconds).toBeGreaterThanOrEqual(least);
  expect(row!.seconds).toBeLessThanOrEqual(most);
});

// Without the delay, 20 failing receivers with 1,000 messages each cause hundreds of attempts a second.
test('other deliveries to a failing receiver wait', async () => {
  const receiver = await added(status(500));
  const well = await added();
  await sold();
  await until(async () => (await webhooks('list'))[1]!.includes(' 500 '));
  for (let i = 0; i < 10; i++) await sold();
  deliveries().poll();
  await well.received(11);
  expect(receiver.messages).toHaveLength(1);
  receiver.response = ok;
  await sql(`UPDATE webhooks SET paused_until = now() WHERE paused_until > now() + interval '8 seconds'`);
  deliveries().poll();
  expect(await receiver.received(11)).toHaveLength(11);
  // A single failure after a success may concern only the message, and delays only that.
  receiver.response = (res, attempt) => (attempt === 12 ? status(500)(res, attempt) : ok(res, attempt));
  await sold();
  await until(async () => (await webhooks('list'))[1]!.includes(' 500 '));
  await sold();
  expect(await receiver.received(13)).toHaveLength(13);
});

test('a response that never ends counts by its status', async () => {
  const receiver = await added((res) => {
    res.writeHead(200);
    const more = () => !res.destroyed && res.write('x'.repeat(60_000), () => setImmediate(more));
    more();
  });
  await sold();
  await receiver.received(1);
  await idle(receiver);
  expect(receiver.messages).toHaveLength(1);
});

test('a receiver that returns 410 gets no more messages', async () => {
  const receiver = await added(status(410));
  await sold();
  await receiver.received(1);
  await until(async () => (await sql('SELECT FROM webhooks WHERE ended_at IS NOT NULL')).length === 1);
  await sold();
  await again();
  expect(await receiver.waiting).toEqual([]);
  expect((await webhooks('list'))[1]).toMatch(/ 410 +0 +\S+Z$/);
  expect(receiver.messages).toHaveLength(1);
});

test('gives up after three days, and drops messages that are too old or too many', async () => {
  const receiver = await added(status(500));
  const before = await results();
  await sold();
  await receiver.received(1);
  await until(async () => (await webhooks('list'))[1]!.includes(' 500 '));
  await sql(`UPDATE webhook_deliveries SET created_at = now() - interval '73 hours'`);
  await again();
  await receiver.received(2);
  await idle(receiver);
  await until(async () => (await results()).given_up === before.given_up! + 1);
  const written = `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data, created_at, due_at)
    SELECT gen_random_uuid(), $1, 'purchase.completed', n, '{}', now() - $2::interval + n * interval '1 ms', 'infinity'
    FROM generate_series(1, $3::int) n`;
  await sql(written, [receiver.id, '97 hours', 3]);
  deliveries().poll();
  await until(async () => (await results()).dropped === before.dropped! + 3);
  expect(await receiver.waiting).toEqual([]);
  await sql(written, [receiver.id, '1 hour', MAX_PENDING + 2]);
  deliveries().poll();
  await until(async () => (await results()).dropped === before.dropped! + 5);
  const [kept] = await sql('SELECT count(*)::int, min(purchase_id)::int FROM webhook_deliveries');
  expect(kept).toEqual({ count: MAX_PENDING, min: 3 });
  await sql('TRUNCATE webhook_deliveries');
});

test('a receiver that hangs delays no other webhook, request or shutdown', async () => {
  const hanging = await added(() => undefined);
  const well = await added();
  const app = await openApp({ OPERATOR_TOKEN });
  for (let i = 0; i < 12; i++) await sold();
  deliveries(app).wake();
  expect(await well.received(12)).toHaveLength(12);
  await hanging.received(4);
  expect((await owner.get('/profile')).status).toBe(200);
  await gracefulStop(app);
  expect((await hanging.waiting).length).toBe(12);
  // No delivery has timed out so far: the process didn't wait for them.
  expect((await webhooks('list'))[1]).not.toContain(' timeout ');
});

test('retries a delivery that times out', async () => {
  const timeout = new AbortController();
  const timeouts = jest.spyOn(AbortSignal, 'timeout').mockReturnValue(timeout.signal);
  const hanging = await added(() => undefined);
  await sold();
  await hanging.received(1);
  expect(timeouts.mock.calls).toEqual([[DELIVERY_TIMEOUT_MS]]);
  timeouts.mockRestore();
  timeout.abort();
  await until(async () => (await webhooks('list'))[1]!.includes(' timeout '));
  hanging.response = ok;
  await again();
  const [first, second] = await hanging.received(2);
  expect(second!.id).toBe(first!.id);
});

test('several processes deliver each message once, including those of a process that ended', async () => {
  const receiver = await added((res) => setImmediate(() => ok(res, 1)));
  const app = await openApp({ OPERATOR_TOKEN });
  const ids = await Promise.all(Array.from({ length: 40 }, () => sold()));
  for (let i = 0; i < 5; i++) {
    deliveries(app).wake();
    deliveries().wake();
    await new Promise(setImmediate);
  }
  await receiver.received(40);
  await idle(receiver);
  expect(receiver.messages.map(({ data }) => data.id).toSorted()).toEqual(ids.toSorted());

  // A command sells without delivering.
  const settings = Object.assign(new Settings(), theApp().get(Settings), { DATABASE_URL: databaseUrl() });
  const logger = createLogger('silent');
  const command = await NestFactory.createApplicationContext(AppModule.forCommand(settings, logger), {
    logger: false,
  });
  await command.get(Database).connect();
  await command
    .get(SalesService)
    .sell(Object.assign(new SaleRequest(), order({ reference: 'in the terminal' })), {});
  await command.close();
  expect((await receiver.received(41)).at(-1)!.data.reference).toBe('in the terminal');

  // The process that claimed it ends before the response.
  receiver.response = () => undefined;
  await sold();
  await receiver.received(42);
  await gracefulStop(app);
  expect(await receiver.waiting).toMatchObject([{ attempts: 1 }]);
});

test('an erasure leaves no personal data in pending messages, and a reference with it is not sent', async () => {
  const receiver = await added(status(503));
  const email = 'Quillon.Marr@example.com';
  const user = await make.user({ emails: [{ email, verified: true }] });
  await sold({ user_id: user.id, email, reference: `order of ${email}` });
  await receiver.received(1);
  const stored = async () =>
    JSON.stringify([await sql('SELECT * FROM webhook_deliveries'), await sql('SELECT * FROM webhooks')]);
  expect(await stored()).not.toMatch(/quillon/i);
  expect((await post(`/operator/users/${user.id}/erase`, {})).status).toBe(200);
  receiver.response = ok;
  await again();
  const [before, after] = await receiver.received(2);
  expect(before!.data.reference).toBe(`order of ${email}`);
  expect(JSON.stringify(after)).not.toMatch(/quillon/i);
  expect(after!.data).toEqual({ ...before!.data, email: ERASED_ADDRESS, reference: null });
});

test('a secret under the previous pepper is encrypted again, and under an unknown one unusable', async () => {
  const receiver = await added();
  const sealed = async () => (await sql<{ secret: Buffer }>('SELECT secret FROM webhooks'))[0]!.secret;
  const [API_KEY_PEPPER, before] = ['another pepper that is long enough', await sealed()];
  const stranger = await openApp({ API_KEY_PEPPER, DATABASE_URL: databaseUrl() });
  const statusOfTest = async (app: typeof stranger) => {
    const webhook = await app.get(EntityManager).findOneByOrFail(Webhook, { id: receiver.id });
    return (await deliveries(app).test(webhook)).status;
  };
  expect(await statusOfTest(stranger)).toBe('secret sealed under a different pepper');
  const successor = await openApp({ API_KEY_PEPPER, API_KEY_PEPPER_PREVIOUS: PEPPER });
  expect(await statusOfTest(successor)).toBe(204);
  await until(async () => !before.equals(await sealed()));
  expect(await statusOfTest(stranger)).toBe(204);
  expect(receiver.messages.map(({ genuine }) => genuine)).toEqual([true, true]);
  for (const app of [stranger, successor]) await gracefulStop(app);
});

describe('docs/guides/webhooks.md', () => {
  const [receiving, message] = readExamples('guides/webhooks.md').filter(({ language }) =>
    /^js/.test(language),
  );

  test('its receiver accepts genuine messages once', async () => {
    const RECEIVER_PORT = String(await freePort());
    const url = `http://127.0.0.1:${RECEIVER_PORT}/sales`;
    const WEBHOOK_SECRET = (await webhooks('add', url))[0]!;
    const receiver = spawn(process.execPath, ['--input-type=module', '-e', receiving!.code], {
      env: { ...process.env, WEBHOOK_SECRET, RECEIVER_PORT },
    });
    programs.push(receiver);
    let printed = '';
    receiver.stdout.on('data', (text) => (printed += String(text)));
    const ofPage = receiving!.prints!.split('\n');
    const prints = (count: number) =>
      until(async () => {
        // Until the receiver listens, the connection is rejected.
        await again();
        return printed.split('\n').length > count;
      });
    const id = await sold({ reference: 'order-20001' });
    await prints(1);
    await refund(id);
    await prints(2);

    const ask = async (id: string, at = theClock().now() / 1000, signature?: string) => {
      const [body, time] = [JSON.stringify({ type: 'purchase.forged', data: {} }), String(Math.floor(at))];
      const key = Buffer.from(WEBHOOK_SECRET.slice(6), 'base64');
      const own = `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`;
      const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature ?? own };
      return (await fetch(url, { method: 'POST', headers, body })).status;
    };
    const now = theClock().now() / 1000;
    expect(await ask('msg_1', now - 400)).toBe(401);
    expect(await ask('msg_1', NaN)).toBe(401);
    expect(await ask('msg_1', now, '')).toBe(401);
    expect(await ask('msg_1', now, `v1,${Buffer.alloc(32).toString('base64')}`)).toBe(401);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    expect(await ask('msg_1')).toBe(204);
    expect(await ask('msg_1')).toBe(204);
    await prints(3);
    receiver.kill();
    await once(receiver, 'exit');
    expect(printed.split('\n')).toEqual([
      ...ofPage.slice(0, 2),
      'purchase.forged undefined undefined undefined',
      '',
    ]);
  });

  test('documents the message as it is sent', async () => {
    const receiver = await added();
    await sold({ reference: 'order-10046' });
    const [{ type, timestamp, data }] = (await receiver.received(1)) as [Message];
    const shown = JSON.parse(message!.code) as Message;
    expect({ type, timestamp, data }).toEqual({
      ...shown,
      timestamp,
      data: {
        ...shown.data,
        id: data.id,
        game_ids: [game.id],
        created_at: data.created_at,
        reference: 'order-10046',
        email: data.email,
        download_keys: data.download_keys,
      },
    });
    expect(Object.keys((data.download_keys as object[])[0]!)).toEqual(
      Object.keys((shown.data.download_keys as object[])[0]!),
    );
    expect(Object.keys(data)).toEqual(Object.keys(shown.data));
  });
});

test('rejects a name that resolves to a private IP address', async () => {
  // A DNS server that resolves every name to this machine.
  const dns = createSocket('udp4', (query, { port }) => {
    const end = query.indexOf(0, 12) + 5;
    const isA = query.readUInt16BE(end - 4) === 1;
    const head = [...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0];
    const response = isA ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] : [];
    dns.send(Buffer.from([...head, ...query.subarray(12, end), ...response]), port, '127.0.0.1');
  });
  const servers = getServers();
  try {
    dns.bind(0, '127.0.0.1');
    await once(dns, 'listening');
    setServers([`127.0.0.1:${dns.address().port}`]);
    await webhooks('add', 'https://books.example.com/hook');
    const id = await newest();
    await sold();
    const listed = async () => (await webhooks('list'))[1]!;
    await until(async () => (await listed()).includes(' private address '));
    expect(await webhooks('test', String(id))).toEqual(['No response: private address.']);
    const app = await openApp({ WEBHOOKS_ALLOW_PRIVATE: 'true' });
    await until(async () => {
      await again(app);
      return (await listed()).includes(' ECONNREFUSED ');
    });
    await gracefulStop(app);
  } finally {
    setServers(servers);
    dns.close();
  }
});

test.each([
  ['1.1.1.1', true],
  ['9.255.255.255', true],
  ['172.32.0.1', true],
  ['2606:4700::1111', true],
  ['0.0.0.0', false],
  ['10.1.2.3', false],
  ['100.64.0.1', false],
  ['127.9.9.9', false],
  ['169.254.169.254', false],
  ['172.31.255.255', false],
  ['192.168.0.1', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::', false],
  ['::1', false],
  ['::ffff:10.0.0.1', false],
  ['64:ff9b::a00:1', false],
  ['2001::1', false],
  ['2001:db8::1', false],
  ['2002:a00:1::', false],
  ['fc00::1', false],
  ['fe80::1', false],
  ['ff02::1', false],
])('%s is public: %s', (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected);
});
