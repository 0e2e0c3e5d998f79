import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { type MockRecord, type MockStore, startMock } from '../../client/mock';
import { interceptTraffic } from '../../src/dev/mock/mock-app';
import { MOCK_API_KEY } from '../../src/dev/mock/mock-seed';
import { MockModule } from '../../src/dev/mock/mock.module';
import { LIVE, LiveQuirks } from '../../src/dev/mock/quirks.service';
import { ResetLock } from '../../src/dev/mock/reset-lock';
import { ResetService } from '../../src/dev/mock/reset.service';
import { SalesService } from '../../src/purchases/sales/sales.service';
import { openApp, theClock, useStore } from '../support/app';
import { sql } from '../support/sql';
import { temporaryFolder } from '../support/temporary';
import { until } from '../support/time';

useStore();

const SEED = [
  {
    type: 'user',
    id: 2,
    username: 'leaf',
    developer: true,
    emails: [{ email: 'leaf@example.com', verified: true }],
  },
  { type: 'user', id: 3, username: 'player', emails: [{ email: 'player@example.com', verified: true }] },
  {
    type: 'game',
    id: 10,
    user_id: 2,
    slug: 'moon',
    title: 'Moon',
    min_price: 499,
    published_at: '2024-01-01T00:00:00Z',
  },
  {
    type: 'game',
    id: 11,
    user_id: 1,
    slug: 'sun',
    title: 'Sun',
    min_price: 499,
    published_at: '2024-01-01T00:00:00Z',
  },
  {
    type: 'upload',
    id: 20,
    game_id: 10,
    filename: 'moon.zip',
    file: { url: 'https://files.example.com/moon.zip', size: 5 },
  },
  { type: 'api_key', key: 'leaf-key', user_id: 2 },
  { type: 'api_key', key: 'player-key', user_id: 3 },
];
const SALE = { game_id: '10', user_id: '3', currency: 'USD', amount: '499', reference: 'order-1' };
const ndjson = (records: object[]) => records.map((record) => JSON.stringify(record)).join('\n');

let app: NestExpressApplication;
let url = '';

beforeAll(async () => {
  app = await openApp({ LENIENT_CLIENTS: 'true' }, { imports: [MockModule], before: interceptTraffic });
  app.get(LiveQuirks).start(LIVE);
  await app.get(ResetService).start(ndjson(SEED));
  url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
});

beforeEach(async () => {
  expect(await call('POST', '/mock/reset')).toEqual({ status: 200, body: { success: true } });
});

interface Sent {
  key?: string;
  json?: unknown;
  form?: Record<string, string>;
  text?: string;
}

async function call(method: string, path: string, { key, json, form, text }: Sent = {}) {
  const type =
    json === undefined
      ? form
        ? 'application/x-www-form-urlencoded'
        : 'application/x-ndjson'
      : 'application/json';
  const body =
    json === undefined ? (form ? new URLSearchParams(form).toString() : text) : JSON.stringify(json);
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': type }),
    },
    body,
  });
  const received = await response.text();
  return { status: response.status, body: received === '' ? '' : (JSON.parse(received) as unknown) };
}

const get = (path: string, key?: string) => call('GET', path, { key });
const fault = (match: object, then: object) => call('POST', '/mock/faults', { json: { match, then } });
const PROFILE = '/profile';

describe('resets', () => {
  test('go back to the seed, with IDs, faults, requests and quirks', async () => {
    const sold = await call('POST', '/mock/sales', {
      form: { game_id: '10', email: 'a@example.com', currency: 'USD', amount: '499' },
    });
    await fault({}, { status: 500 });
    await get(PROFILE);
    await call('PUT', '/mock/quirks', { json: { empty_lists: 'array' } });
    await call('POST', '/mock/reset', { text: '\n\n' });
    expect(await get('/mock/faults')).toEqual({ status: 200, body: { faults: [] } });
    expect(await get('/mock/requests')).toEqual({ status: 200, body: { requests: [] } });
    expect(await get('/mock/quirks')).toEqual({ status: 200, body: LIVE });
    const again = await call('POST', '/mock/sales', {
      form: { game_id: '10', email: 'a@example.com', currency: 'USD', amount: '499' },
    });
    const id = ({ body }: typeof sold) => (body as { purchase: { id: number } }).purchase.id;
    expect(id(again)).toBe(id(sold));
  });

  test('load other records once', async () => {
    const other = { type: 'user', id: 7, username: 'other' };
    await call('POST', '/mock/reset', { text: ndjson([other]) });
    expect(await get('/users/7', MOCK_API_KEY)).toMatchObject({ status: 200 });
    expect(await get('/users/2', MOCK_API_KEY)).toMatchObject({ status: 404 });
    await call('POST', '/mock/reset');
    expect(await get('/users/2', MOCK_API_KEY)).toMatchObject({ status: 200 });
  });

  test('list the mistakes in a seed by line, and change nothing', async () => {
    const text = ndjson([
      { type: 'user', id: 7, username: 'other' },
      { type: 'gaem', id: 1 },
      { type: 'game', id: 9 },
    ]);
    const { status, body } = await call('POST', '/mock/reset', { text });
    expect(status).toBe(400);
    expect((body as { errors: string[] }).errors).toEqual([
      'line 2: unknown type gaem: did you mean `game`?',
      'line 3: game 9: slug is required',
      'line 3: game 9: title is required',
      'line 3: game 9: user_id is required',
    ]);
    expect(await get('/users/2', MOCK_API_KEY)).toMatchObject({ status: 200 });
  });

  test('keep the numbering if a record fits no other one', async () => {
    const sell = async () => {
      const form = { game_id: '10', email: 'a@example.com', currency: 'USD', amount: '499' };
      const { body } = await call('POST', '/mock/sales', { form });
      return (body as { purchase: { id: number } }).purchase.id;
    };
    const first = await sell();
    const text = ndjson([{ type: 'game', id: 9, slug: 'nine', title: 'Nine', user_id: 999 }]);
    expect(await call('POST', '/mock/reset', { text })).toMatchObject({ status: 400 });
    expect(await sell()).toBe(first + 1);
  });

  test('empties large tables, too', async () => {
    await sql("INSERT INTO users (username) SELECT 'user-' || n FROM generate_series(1, 20000) n");
    await call('POST', '/mock/reset');
    expect(await sql('SELECT id::int FROM users ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  test('keep the test key of a replaced user', async () => {
    await call('POST', '/mock/reset', { text: ndjson([{ type: 'user', id: 1, username: 'someone' }]) });
    expect(await get(PROFILE, MOCK_API_KEY)).toMatchObject({
      body: { user: { id: 1, username: 'someone' } },
    });
  });

  test('keep the test key of the records', async () => {
    const key = { type: 'api_key', key: MOCK_API_KEY, user_id: 1, scopes: ['profile:me'] };
    expect(await call('POST', '/mock/reset', { text: ndjson([key]) })).toMatchObject({ status: 200 });
    expect(await get(PROFILE, MOCK_API_KEY)).toMatchObject({ status: 200 });
    expect(await get('/profile/games', MOCK_API_KEY)).toMatchObject({ status: 403 });
  });

  test('wait for each other, and requests wait for them', async () => {
    // Requests may take any time on a busy machine.
    theClock().stop();
    const resets = Array.from({ length: 5 }, () => call('POST', '/mock/reset'));
    const reads = Array.from({ length: 5 }, () => get(PROFILE, MOCK_API_KEY));
    expect(new Set((await Promise.all(resets)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set((await Promise.all(reads)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(await sql('SELECT count(*) FROM users')).toEqual([{ count: 3 }]);
  });
});

describe('resets and slow requests', () => {
  /** The response of a request that waits for longer than the five seconds. */
  async function responseAfterWait(method: string, path: string, sent?: Sent) {
    const lock = app.get(ResetLock);
    const spies = [jest.spyOn(lock, 'reset'), jest.spyOn(lock, 'enter')];
    let isOver = false;
    const response = call(method, path, sent).finally(() => (isOver = true));
    // The deadline of a request is shorter, and applies until it waits.
    while (!isOver && spies.every(({ mock }) => mock.calls.length === 0)) await get('/mock/quirks');
    for (; !isOver; await get('/mock/quirks')) theClock().advance(1000);
    for (const spy of spies) spy.mockRestore();
    return response;
  }

  test('a reset ends the delay of a fault', async () => {
    theClock().stop();
    await fault({ path: '/profile' }, { delay_ms: 60_000 });
    const slow = get(PROFILE, MOCK_API_KEY);
    // The request must be in flight.
    while (!JSON.stringify((await get('/mock/faults')).body).includes('"used":1'));
    expect(await call('POST', '/mock/reset')).toMatchObject({ status: 200 });
    expect(await slow).toMatchObject({ status: 200 });
  });

  test('a client that disconnects during a reset does not block the next one', async () => {
    const lock = app.get(ResetLock);
    let release!: () => void;
    const reset = lock.reset(() => new Promise<void>((resolve) => (release = resolve)));
    const entered = jest.spyOn(lock, 'enter');
    const connected = once(app.getHttpServer() as Server, 'connection') as Promise<[Socket]>;
    const client = connect(Number(new URL(url).port));
    client.write(`GET ${PROFILE} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const [connection] = await connected;
    await until(() => entered.mock.calls.length === 1);
    entered.mockRestore();
    const disconnected = new Promise((resolve) => connection.once('close', resolve));
    client.resetAndDestroy();
    await disconnected;
    release();
    await reset;
    expect(await call('POST', '/mock/reset')).toMatchObject({ status: 200 });
  });

  test('a reset waits for a sale for at most five seconds, and changes nothing then', async () => {
    theClock().stop();
    await fault({ path: '/profile' }, { status: 503 });
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    const sales = app.get(SalesService);
    const sell = sales.sell.bind(sales);
    let isReached = false;
    jest.spyOn(sales, 'sell').mockImplementationOnce(async (...given) => {
      isReached = true;
      await held;
      return sell(...given);
    });
    const sold = call('POST', '/mock/sales', { form: SALE });
    while (!isReached) await get('/mock/quirks');
    expect(await responseAfterWait('POST', '/mock/reset')).toEqual({
      status: 503,
      body: { errors: ['service unavailable'] },
    });
    expect(await get('/mock/faults')).toMatchObject({ body: { faults: [{ used: 0 }] } });
    release();
    expect(await sold).toMatchObject({ status: 200 });
  });

  test.each([
    ['a sale', '/mock/sales', () => SALE],
    ['a refund', '/mock/refunds', () => ({ reference: 'order-1' })],
    ['a token', '/mock/tokens', () => ({ user_id: '3', game_id: '10', scope: 'profile:me' })],
  ])('%s waits for a reset', async (_, path, form) => {
    expect(await call('POST', '/mock/sales', { form: SALE })).toMatchObject({ status: 200 });
    theClock().stop();
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    const reset = app.get(ResetLock).reset(() => held);
    expect(await responseAfterWait('POST', path, { form: form() })).toMatchObject({ status: 503 });
    release();
    await reset;
    expect(await call('POST', path, { form: form() })).toMatchObject({ status: 200 });
  });
});

test('a request waits for at most five seconds, however many resets there are', async () => {
  theClock().stop();
  const lock = app.get(ResetLock);
  const releases: (() => void)[] = [];
  const [first, second] = [1, 2].map(() =>
    lock.reset(() => new Promise<void>((resolve) => releases.push(resolve))),
  );
  const entered = expect(lock.enter()).rejects.toThrow('service unavailable');
  await until(() => releases.length === 1);
  theClock().advance(3000);
  releases[0]!();
  await first;
  await until(() => releases.length === 2);
  theClock().advance(2000);
  await entered;
  releases[1]!();
  await second;
});

describe('sales, refunds and tokens', () => {
  test('need no credential', async () => {
    const sold = await call('POST', '/mock/sales', { form: SALE });
    expect(sold).toMatchObject({ status: 200, body: { download_keys: [{ game_id: 10 }] } });
    expect(await get('/games/10/ownership', 'player-key')).toEqual({ status: 200, body: { owns: true } });
    const refunded = await call('POST', '/mock/refunds', { form: { reference: 'order-1' } });
    expect(refunded).toMatchObject({ status: 200, body: { purchase: { status: 'refunded' } } });
    expect(await get('/games/10/ownership', 'player-key')).toEqual({ status: 200, body: { owns: false } });
    expect(await call('POST', '/mock/refunds', { form: { reference: 'order-2' } })).toEqual({
      status: 404,
      body: { errors: ['invalid purchase'] },
    });
  });

  test('unknown fields of a sale and a refund change nothing', async () => {
    expect(await call('POST', '/mock/sales', { form: { ...SALE, ammount: '499' } })).toEqual({
      status: 400,
      body: { errors: ['ammount is an unknown field'] },
    });
    expect(await call('POST', '/mock/refunds', { form: { reference: 'order-1' } })).toMatchObject({
      status: 404,
    });
    expect(await call('POST', '/mock/sales', { form: SALE })).toMatchObject({ status: 200 });
    expect(await call('POST', '/mock/refunds', { json: { reference: 'order-1', keep_key: true } })).toEqual({
      status: 400,
      body: { errors: ['keep_key is an unknown field'] },
    });
    expect(await call('POST', '/mock/sales', { form: SALE })).toMatchObject({
      status: 200,
      body: { purchase: { status: 'complete' } },
    });
  });

  const token = async (fields: object) =>
    (await call('POST', '/mock/tokens', { json: { user_id: 3, game_id: 10, ...fields } })).body as {
      key: string;
    };

  test('tokens are launch tokens, also expired ones and those of another issuer', async () => {
    const valid = await token({ scope: 'profile:me game:view:ownership' });
    expect(await get('/games/10/ownership', valid.key)).toEqual({ status: 200, body: { owns: false } });
    expect(await get(PROFILE, (await token({ expires_in: -1 })).key)).toEqual({
      status: 401,
      body: { errors: ['token expired'] },
    });
    expect(await get(PROFILE, (await token({ issuer: 'https://other.example.com' })).key)).toEqual({
      status: 401,
      body: { errors: ['invalid token'] },
    });
    expect(await token({ game_id: 99 })).toEqual({ errors: ['invalid game'] });
    expect(await token({ user_id: 99 })).toEqual({ errors: ['invalid user'] });
    expect(await token({ scope: 'profile:me sudo' })).toEqual({ errors: ['unknown scopes: sudo'] });
    expect(await token({ expires: -1, scopes: 'profile:me' })).toEqual({
      errors: ['expires is an unknown field', 'scopes is an unknown field'],
    });
  });
});

describe('faults', () => {
  test('apply once by default, before authentication', async () => {
    expect(await fault({ path: '/profile' }, { status: 503 })).toEqual({
      status: 200,
      body: { fault: { id: 1, match: { path: '/profile' }, then: { status: 503 }, used: 0 } },
    });
    expect(await get(PROFILE)).toEqual({ status: 503, body: { errors: ['service unavailable'] } });
    expect(await get(PROFILE, MOCK_API_KEY)).toMatchObject({ status: 200 });
    expect(await get('/mock/faults')).toMatchObject({ body: { faults: [{ id: 1, used: 1 }] } });
  });

  test.each([
    [414, 'URL too long'],
    [429, 'rate limit exceeded'],
    [431, 'request header fields too large'],
  ])('send the usual text of status %i', async (status, text) => {
    await fault({ path: '/profile' }, { status });
    expect(await get(PROFILE)).toEqual({ status, body: { errors: [text] } });
  });

  test('keep their status on legacy routes', async () => {
    await fault({ path: '/api/1/{KEY}/me' }, { errors: ['try later'] });
    expect(await get(`/api/1/${MOCK_API_KEY}/me`)).toEqual({ status: 400, body: { errors: ['try later'] } });
  });

  test('count matching requests, including those that another fault took', async () => {
    await fault({ path: '/profile', nth: 1 }, { status: 500 });
    await fault({ path: '/profile', nth: 2, times: 2 }, { status: 502 });
    const statuses = [];
    for (let i = 0; i < 5; i++) statuses.push((await get(PROFILE, MOCK_API_KEY)).status);
    expect(statuses).toEqual([500, 502, 502, 200, 200]);
  });

  test('can last, and be removed', async () => {
    await fault({ method: 'GET', times: 0 }, { status: 429, headers: { 'Retry-After': '7' } });
    for (let i = 0; i < 3; i++) {
      const response = await fetch(url + PROFILE);
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
    }
    expect(await call('DELETE', '/mock/faults')).toEqual({ status: 200, body: { success: true } });
    expect(await get(PROFILE, MOCK_API_KEY)).toMatchObject({ status: 200 });
  });

  test('take null for a missing value', async () => {
    const json = { match: null, then: { status: 502, errors: null, headers: null } };
    expect(await call('POST', '/mock/faults', { json })).toEqual({
      status: 200,
      body: { fault: { id: 1, match: {}, then: { status: 502 }, used: 0 } },
    });
    expect(await get(PROFILE)).toEqual({ status: 502, body: { errors: ['bad gateway'] } });
    expect(await fault({}, { status: null })).toMatchObject({ status: 400 });
  });

  test('reject unknown paths, empty effects and more than a hundred', async () => {
    expect(await fault({ path: '/profil' }, { status: 500 })).toMatchObject({ status: 400 });
    expect(await fault({ path: '/mock/reset' }, { status: 500 })).toMatchObject({ status: 400 });
    expect(await fault({ nth: 0 }, { status: 500 })).toMatchObject({ status: 400 });
    expect(await fault({}, {})).toMatchObject({ status: 400 });
    for (const headers of [{ 'Bad header': 'x' }, { retry: { after: 1 } }])
      expect(await fault({}, { status: 500, headers })).toMatchObject({ status: 400 });
    expect(await call('POST', '/mock/faults', { json: { match: [], then: { close: true } } })).toMatchObject({
      status: 400,
    });
    for (let i = 0; i < 100; i++) await fault({ path: '/profile', nth: 1000 }, { status: 500 });
    expect(await fault({}, { status: 500 })).toEqual({
      status: 400,
      body: { errors: ['at most 100 faults are possible'] },
    });
  });

  test('reject unknown fields', async () => {
    const json = {
      mach: { path: '/profile' },
      match: { paht: '/profile' },
      then: { status: 500, error: 'x' },
    };
    expect(await call('POST', '/mock/faults', { json })).toEqual({
      status: 400,
      body: {
        errors: [
          'match.paht is an unknown field',
          'then.error is an unknown field',
          'mach is an unknown field',
        ],
      },
    });
    expect(await get('/mock/faults')).toEqual({ status: 200, body: { faults: [] } });
  });

  /** The bytes of a body before its connection closed. */
  const received = (path: string, method = 'GET') =>
    new Promise<string>((resolve) => {
      let text = '';
      const headers = { authorization: `Bearer ${MOCK_API_KEY}` };
      request(url + path, { method, headers }, (response) => {
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('error', () => undefined).on('close', () => resolve(`${response.statusCode} ${text}`));
      })
        .on('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
        .end();
    });

  test('close the connection, before a response or inside it', async () => {
    await fault({ path: '/profile' }, { close: true });
    expect(await received(PROFILE)).toBe('ECONNRESET');
    await fault({ path: '/profile' }, { truncate: 9 });
    expect(await received(PROFILE)).toBe('200 {"user":{');
    expect(await received(PROFILE)).toContain('"test-dev"');
  });

  test('send the headers of a response to HEAD, and a response that is shorter', async () => {
    await fault({ method: 'HEAD', times: 0 }, { truncate: 0 });
    expect(await received(PROFILE, 'HEAD')).toBe('200 ');
    await call('POST', '/mock/reset');
    for (const method of ['GET', 'HEAD']) {
      await fault({ method }, { truncate: 10_000 });
      expect(await received(PROFILE, method)).toBe(await received(PROFILE, method));
    }
    // A reset waits for requests in flight.
    expect(await call('POST', '/mock/reset')).toMatchObject({ status: 200 });
  });

  test.each([204, 304])('send no body with status %i', async (status) => {
    await fault({ path: '/profile' }, { status, headers: { 'X-Fault': 'a' } });
    const response = await fetch(url + PROFILE);
    expect([response.status, response.headers.get('x-fault')]).toEqual([status, 'a']);
    expect(response.headers.get('content-length')).toBeNull();
  });

  test('delay a response beyond the deadlines of the service', async () => {
    theClock().stop();
    await fault({ path: '/profile' }, { delay_ms: 30_000 });
    const slow = get(PROFILE, MOCK_API_KEY);
    while (!JSON.stringify((await get('/mock/faults')).body).includes('"used":1'));
    theClock().advance(30_000);
    expect(await slow).toMatchObject({ status: 200 });
  });
});

describe('recorded requests', () => {
  test('a misspelled parameter does not list all', async () => {
    expect(await get('/mock/requests?sine=7')).toEqual({
      status: 400,
      body: { errors: ['sine is an unknown field'] },
    });
  });

  test('have templates, owners and no secrets', async () => {
    await get('/profile?a=1', MOCK_API_KEY);
    await get(`/api/1/${MOCK_API_KEY}/me`);
    await get(`/profile?api_key=${MOCK_API_KEY}`);
    await get('/games/11/download_keys?download_key=gwdl_secret', MOCK_API_KEY);
    await call('POST', '/collections', { key: MOCK_API_KEY, form: { title: 'Best' } });
    await get('/nothing', 'wrong');
    const { body } = await get('/mock/requests?since=1');
    const text = JSON.stringify(body);
    expect(text).not.toContain(MOCK_API_KEY);
    expect(text).not.toContain('gwdl_secret');
    expect((body as { requests: object[] }).requests).toMatchObject([
      { id: 2, path: '/api/1/{KEY}/me', credential: 'key', user_id: 1, status: 200 },
      { id: 3, path: '/profile', credential: 'key', user_id: 1, status: 200 },
      { id: 4, path: '/games/{game_id}/download_keys', query: { download_key: '[hidden]' }, status: 404 },
      { id: 5, method: 'POST', path: '/collections', body: { title: 'Best' }, status: 200 },
      { id: 6, path: null, url: '/nothing', credential: 'key', user_id: null, status: 404, fault_id: null },
    ]);
  });
});

test('requests that a fault takes have their credential and body', async () => {
  await fault({ path: '/collections' }, { status: 503 });
  await fault({ path: '/profile' }, { close: true });
  await call('POST', '/collections', { key: MOCK_API_KEY, form: { title: 'Best' } });
  await get(`/profile?api_key=${MOCK_API_KEY}`).catch(() => undefined);
  expect(await get('/mock/requests')).toMatchObject({
    body: {
      requests: [
        { credential: 'key', user_id: null, body: { title: 'Best' }, status: 503, fault_id: 1 },
        { credential: 'key', url: '/profile?api_key=[hidden]', status: null, fault_id: 2 },
      ],
    },
  });
});

test.each([
  '/upload-sessions/gw_secret',
  '/API/1/gw_secret/me',
  '//api/1//gw_secret/me',
  '/Download/gw_secret',
  '/profile?jwt=gw_secret',
])('the record of %s has no secret', async (path) => {
  await get(path);
  expect(JSON.stringify((await get('/mock/requests')).body)).not.toContain('gw_secret');
});

test('a large body is recorded without its content', async () => {
  await call('POST', '/collections', { key: MOCK_API_KEY, form: { title: 'x'.repeat(20_000) } });
  expect(await get('/mock/requests')).toMatchObject({ body: { requests: [{ body: '[more than 16 KiB]' }] } });
});

describe('quirks of the live site', () => {
  test('an empty list is an object, modern and legacy; lists inside stay', async () => {
    expect(await get('/profile/games', 'player-key')).toEqual({ status: 200, body: { games: {} } });
    expect(await get('/api/1/player-key/my-games')).toEqual({ status: 200, body: { games: {} } });
    expect(await get('/profile/owned-keys', 'player-key')).toMatchObject({
      body: { page: 1, owned_keys: {} },
    });
    expect(await get('/profile/games', 'leaf-key')).toMatchObject({
      body: { games: [{ id: 10, traits: [], earnings: [] }] },
    });
    await call('PUT', '/mock/quirks', { json: { empty_lists: 'array' } });
    expect(await get('/profile/games', 'player-key')).toEqual({ status: 200, body: { games: [] } });
  });

  test('a paid file needs download_key_id', async () => {
    const sold = await call('POST', '/mock/sales', {
      form: { game_id: '10', user_id: '3', currency: 'USD', amount: '499' },
    });
    const [{ id }] = (sold.body as { download_keys: [{ id: number }] }).download_keys;
    const mustBuy = { status: 403, body: { errors: ['you must buy this game to download'] } };
    expect(await get('/uploads/20/download', 'player-key')).toEqual(mustBuy);
    expect(await get(`/uploads/20/download?download_key_id=${id}`, 'player-key')).toMatchObject({
      status: 302,
    });
    expect(await get('/uploads/20/download', 'leaf-key')).toMatchObject({ status: 302 });
    expect(await call('PUT', '/mock/quirks', { json: { download_key_required: false } })).toEqual({
      status: 200,
      body: { empty_lists: 'object', download_key_required: false },
    });
    expect(await get('/uploads/20/download', 'player-key')).toMatchObject({ status: 302 });
  });

  test('an unknown field changes none', async () => {
    const json = { empty_lists: 'array', download_key_requierd: false };
    expect(await call('PUT', '/mock/quirks', { json })).toEqual({
      status: 400,
      body: { errors: ['download_key_requierd is an unknown field'] },
    });
    expect(await get('/mock/quirks')).toEqual({ status: 200, body: LIVE });
  });
});

describe('the client', () => {
  let store: MockStore;
  const games = async () =>
    (await get('/profile/games', MOCK_API_KEY)).body as { games: { id: number }[] | object };

  beforeEach(async () => {
    process.env.GAMEWHARF_URL = `${url}/`;
    store = await startMock({ seed: SEED as MockRecord[], quirks: { empty_lists: 'array' } });
  });
  afterEach(() => delete process.env.GAMEWHARF_URL);

  test('returns what the routes return', async () => {
    expect([store.url, store.apiKey]).toEqual([url, MOCK_API_KEY]);
    const { purchase } = await store.sell({ game_id: 10, user_id: 3, currency: 'USD', amount: 499 });
    expect(await store.refund({ purchase_id: purchase.id })).toMatchObject({
      purchase: { id: purchase.id, status: 'refunded' },
    });
    const { key } = await store.token({ user_id: 3, game_id: 10, scope: 'profile:me' });
    expect(await get(PROFILE, key)).toMatchObject({ body: { user: { id: 3 } } });
    expect(await store.fault({ then: { status: 502 } })).toMatchObject({ id: 1, used: 0 });
    await store.clearFaults();
    expect((await get(PROFILE, MOCK_API_KEY)).status).toBe(200);
    expect(await store.requests()).toMatchObject([{ id: 1 }, { id: 2 }]);
    expect(await store.requests({ since: 1 })).toMatchObject([{ id: 2, path: '/profile', user_id: 1 }]);
    await expect(store.refund({ purchase_id: 999 })).rejects.toMatchObject({
      status: 404,
      errors: ['invalid purchase'],
    });
  });

  test('goes back to its seed and quirks', async () => {
    expect(await store.quirks()).toEqual({ ...LIVE, empty_lists: 'array' });
    expect(await store.quirks({ download_key_required: false })).toMatchObject({
      download_key_required: false,
    });
    await store.reset([{ type: 'user', id: 7, username: 'other' }]);
    expect(await games()).toEqual({ games: [] });
    await store.reset();
    expect(await games()).toMatchObject({ games: [{ id: 11 }] });
    expect(await store.quirks()).toEqual({ ...LIVE, empty_lists: 'array' });
  });

  test('says where no mock responds', async () => {
    process.env.GAMEWHARF_URL = 'http://127.0.0.1:1/';
    await expect(startMock()).rejects.toThrow('POST http://127.0.0.1:1/mock/reset: no response');
  });

  test.each(['NDJSON', 'the path of a file'])('takes %s as a seed', async (type) => {
    const text = ndjson([{ type: 'game', id: 12, user_id: 1, slug: 'star', title: 'Star' }]);
    const folder = await temporaryFolder('mock-seed-');
    const file = join(folder, 'seed.ndjson');
    writeFileSync(file, text);
    await startMock({ seed: type === 'NDJSON' ? text : file });
    rmSync(folder, { recursive: true });
    expect(await games()).toMatchObject({ games: [{ id: 12 }] });
  });
});
