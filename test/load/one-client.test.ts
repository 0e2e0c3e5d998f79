import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, type Server as HttpServer, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client } from 'pg';
import { InFlightRequest } from '../../src/platform/server/admission';
import { ConcurrencyLimit } from '../../src/platform/limits/concurrency-limit';
import { loadSettings } from '../../src/platform/config/load-settings';
import { RequestGate } from '../../src/platform/server/request-gate';
import { MAX_BODY_BYTES } from '../../src/platform/input/body';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { Server } from '../../src/server';
import { FaultyProxy } from '../support/proxy';
import { type Actor } from '../support/actor';
import { databaseUrl, type Environment, logged, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { until } from '../support/time';

useStore();

const [ONE, OTHER] = ['127.0.0.1', '127.0.0.2'];

let app: NestExpressApplication | undefined;
let proxy: FaultyProxy | undefined;
let user: Actor;
const asked: ClientRequest[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  user = await make.user();
});
afterEach(async () => {
  for (const one of [...asked.splice(0), ...sockets.splice(0)]) one.destroy();
  proxy?.thaw();
  if (app) await gracefulStop(app);
  await proxy?.vanish();
  [app, proxy] = [undefined, undefined];
});

const admission = () => app!.get(RequestGate).admission;

async function start(environment: Environment): Promise<void> {
  proxy = await FaultyProxy.before(databaseUrl());
  app = await openApp({ DATABASE_URL: proxy.through(databaseUrl()), ...environment });
  await responseTo(ask('/profile'));
}

/** Sends a request from an IP address without waiting for the response. */
function ask(
  path: string,
  { from = ONE, headers = {} }: { from?: string; headers?: object } = {},
): ClientRequest {
  const { port } = new URL(localUrl(app!));
  const one = request({
    host: '127.0.0.1',
    port,
    path,
    localAddress: from,
    agent: false,
    headers: { authorization: `Bearer ${user.key}`, ...headers },
  });
  one.on('error', () => undefined);
  one.end();
  asked.push(one);
  return one;
}

const localUrl = (one: NestExpressApplication) => {
  const { port } = one.getHttpServer().address() as { port: number };
  return `http://127.0.0.1:${port}`;
};

async function responseTo(one: ClientRequest): Promise<{ status: number; connection: string | undefined }> {
  const [res] = (await once(one, 'response')) as [IncomingMessage];
  res.resume();
  return { status: res.statusCode!, connection: res.headers.connection };
}

async function open(from = ONE): Promise<Socket> {
  const { port } = new URL(localUrl(app!));
  const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** The head of a request whose body does not arrive. */
const promise = (length: number, method = 'POST') =>
  `${method} /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${user.key}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;

async function promised(length: number, { from = ONE, method = 'POST' } = {}): Promise<Socket> {
  const socket = await open(from);
  socket.write(promise(length, method));
  return socket;
}

const many = <T>(n: number, work: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => work(i));

describe('requests with a database that hangs', () => {
  const statuses: number[] = [];
  const askedBy = (count: number, options: (i: number) => { from?: string; headers?: object }) =>
    many(
      count,
      (i) =>
        void responseTo(ask('/profile', options(i))).then(
          ({ status }) => statuses.push(status),
          () => undefined,
        ),
    );
  beforeEach(() => statuses.splice(0));

  test('one IP address cannot use all capacity, whatever it claims, and its waiting requests give way to another', async () => {
    await start({ MAX_IN_FLIGHT: '40' });
    proxy!.freeze();
    askedBy(60, (i) => ({ headers: { 'x-forwarded-for': `203.0.113.${i}` } }));
    // 30 of the requests run and 10 wait.
    await until(() => statuses.length === 20);
    askedBy(20, () => ({ from: OTHER }));
    // 10 of these requests replace the 10 that waited.
    await until(() => statuses.length === 40);
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(admission().requests.accepted).toBe(40);
  });

  test('uses the forwarded IP address behind a trusted proxy', async () => {
    await start({ MAX_IN_FLIGHT: '40', TRUSTED_PROXIES: 'loopback' });
    proxy!.freeze();
    const headers = (address: string) => ({ headers: { 'x-forwarded-for': `198.51.100.1, ${address}` } });
    askedBy(60, (i) => headers(`2001:db8::${i}`));
    await until(() => statuses.length === 20);
    askedBy(20, () => headers('2001:db8:0:1::1'));
    await until(() => statuses.length === 40);
    expect(admission().requests.accepted).toBe(40);
  });

  test('IPv6 networks of one household run twice as much as one, and another site is unaffected', async () => {
    await start({ MAX_IN_FLIGHT: '200', TRUSTED_PROXIES: 'loopback' });
    proxy!.freeze();
    const { requests } = admission();
    askedBy(64, (i) => ({ headers: { 'x-forwarded-for': `2001:db8:0:${i.toString(16)}::1` } }));
    await until(() => requests.accepted === 64);
    expect(requests.running).toBe(32);
    askedBy(16, () => ({ headers: { 'x-forwarded-for': '2001:db8:1::1' } }));
    await until(() => requests.accepted === 80);
    expect(requests.running).toBe(48);
  });

  test('a disconnected client keeps its concurrency slots until the work ends, and no longer', async () => {
    await start({ MAX_IN_FLIGHT: '40' });
    proxy!.freeze();
    const gone = many(20, () => ask('/profile'));
    await until(() => admission().requests.accepted === 20);
    for (const { socket } of gone) (socket as Socket).resetAndDestroy();
    await until(() => admission().count === 0);
    expect(admission().requests.accepted).toBe(20);
    await until(() => admission().requests.accepted === 0);
  });
});

test('rejects a request that waits for a second before running ones', async () => {
  await start({ MAX_IN_FLIGHT: '4' });
  const holder = new Client({ connectionString: databaseUrl() });
  await holder.connect();
  await holder.query('BEGIN; LOCK TABLE users');
  const statuses = (count: number) => many(count, () => responseTo(ask('/profile')));
  const running = Promise.race(statuses(3));
  await until(() => admission().requests.accepted === 3);
  expect(await Promise.race([...statuses(1), running.then(() => 'too late')])).toMatchObject({ status: 503 });
  await holder.end();
});

describe('bodies that have not arrived', () => {
  test('do not count as running, and return 408 after eight seconds', async () => {
    await start({});
    const waiting = await Promise.all(many(50, () => promised(1000)));
    await until(() => admission().count === 50);
    await until(() => admission().requests.accepted === 0);
    expect(admission().uploads.used).toBe(50 * 16 * 1024);
    expect(await responseTo(ask('/profile'))).toMatchObject({ status: 200 });
    const texts = await Promise.all(
      waiting.map(async (socket) => {
        let text = '';
        socket.on('data', (data) => (text += data.toString()));
        await once(socket, 'close');
        return text.slice(0, 12);
      }),
    );
    expect(new Set(texts)).toEqual(new Set(['HTTP/1.1 408']));
    await until(() => admission().uploads.used === 0);
  });

  test('may fill three quarters of the limit from one IP address, while another can still upload', async () => {
    await start({});
    const { uploads } = admission();
    const most = (uploads.total * 3) / 4 / MAX_BODY_BYTES;
    await Promise.all(many(most, () => promised(MAX_BODY_BYTES)));
    await until(() => admission().count === most);
    const rejected = await promised(MAX_BODY_BYTES);
    const [data] = (await once(rejected, 'data')) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1.1 503 [^]*Connection: close[^]*service unavailable/);
    const socket = await promised('title=x'.length, { from: OTHER });
    socket.write('title=x');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  });

  test('wait for their turn once they have arrived', async () => {
    await start({ MAX_IN_FLIGHT: '4' });
    const socket = await promised('title=x'.length);
    await until(() => admission().uploads.used > 0);
    proxy!.freeze();
    many(3, () => ask('/profile'));
    await until(() => admission().requests.accepted === 3);
    socket.write('title=x');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 503 /);
    expect(admission().uploads.used).toBe(0);
  });

  test.each(['GET', 'POST'])(
    'of %s requests with an early response count until they have arrived',
    async (method) => {
      await start({});
      user = user.with('no key') as Actor;
      const socket = await promised(5, { method });
      await once(socket, 'data');
      await until(() => admission().count === 0);
      expect(admission().uploads.used).toBe(16 * 1024);
      socket.write('12345');
      await until(() => admission().uploads.used === 0);
      expect(socket.destroyed).toBe(false);
    },
  );

  test('do not count after the connection is closed', async () => {
    await start({});
    const begun = await Promise.all(many(20, () => promised(400_000)));
    for (const socket of begun) socket.write('x'.repeat(100_000));
    await until(() => admission().count === 20);
    for (const socket of begun) socket.resetAndDestroy();
    await until(() => admission().count === 0 && admission().uploads.used === 0);
  });
});

describe('bodies in tiny chunks', () => {
  const head = () => promise(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
  const chunks = (n: number) => '1\r\nx\r\n'.repeat(n);

  test('are rejected and no longer read if there are too many chunks for their bytes', async () => {
    await start({});
    const socket = await open();
    const arrived = jest.spyOn(InFlightRequest.prototype, 'chunkReceived');
    socket.write(head() + chunks(10_000));
    expect(String(await once(socket, 'data'))).toMatch(
      /^HTTP\/1.1 413 [^]*Connection: close[^]*\{"errors":\["too many chunks"\]\}$/,
    );
    socket.write(chunks(10_000));
    await once(socket, 'close');
    expect(arrived.mock.calls.length).toBeLessThanOrEqual(10_000);
  });

  test('are read if there are few, or the body is large', async () => {
    await start({});
    const socket = await open();
    socket.write(`${head()}${'6\r\ntitle=\r\n'}${chunks(60)}0\r\n\r\n`);
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 [^]*keep-alive[^]*"title":"x{60}"/);
    socket.write(head() + `40\r\n${'a=1&'.repeat(16)}\r\n`.repeat(50) + chunks(900) + '0\r\n\r\n');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  });

  test('are not read after an early response', async () => {
    await start({});
    user = user.with('no key') as Actor;
    const server = app!.getHttpServer() as HttpServer;
    const broken = jest.fn();
    server.on('clientError', broken);
    const socket = await open();
    socket.write(head() + chunks(1));
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 401 [^]*Connection: close/);
    socket.write('not a chunk\r\n');
    await once(socket, 'close');
    expect(broken).not.toHaveBeenCalled();
    await until(() => admission().uploads.used === 0);
  });
});

test('a client with one request does not wait for all requests of another', async () => {
  await start({});
  const quiet = await open(OTHER);
  const noisy = await Promise.all(many(600, () => open()));
  const served: string[] = [];
  app!.get(RequestGate).observers.push(({ url }) => served.push(url!));
  // The kernel has all of them before the service reads the first.
  for (const socket of noisy) socket.write('GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n');
  quiet.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => served.length === 601);
  expect(served.indexOf('/health/live')).toBeLessThan(200);
});

test('a new connection does not wait for the requests of earlier ones of another client', async () => {
  await start({});
  const served: string[] = [];
  app!.get(RequestGate).observers.push(({ url }) => served.push(url!));
  const connected = many(300, () => open());
  const nine = 'GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(9);
  // The service accepts one at a time, and all of them are connected before.
  for (const socket of sockets) socket.resume().write(nine);
  const quiet = open(OTHER);
  sockets.at(-1)!.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => served.includes('/health/live'));
  // Without an order, all 2,700 are served first.
  expect(served.indexOf('/health/live')).toBeLessThan(900);
  await until(() => served.length === 2701);
  await Promise.all([...connected, quiet]);
});

test('rejects a flood beyond the queue and serves other clients', async () => {
  await start({ MAX_IN_FLIGHT: '50' });
  const quiet = await open(OTHER);
  const noisy = await Promise.all(many(250, () => open()));
  await until(() => admission().connections.used === 251);
  const statuses = new Set<number>();
  app!.get(RequestGate).observers.push((_, { statusCode }) => statuses.add(statusCode));
  for (const socket of noisy)
    socket.resume().write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(9));
  quiet.write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(String(await once(quiet, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  await until(() => admission().count === 0);
  expect(statuses).toEqual(new Set([200, 503]));
});

test('connections: one IP address gets three quarters, and another can connect', async () => {
  await start({ MAX_CONNECTIONS: '8' });
  await until(() => admission().connections.used === 0);
  const opened = await Promise.all(many(8, () => open()));
  await until(() => opened.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length === 2);
  expect(admission().connections).toMatchObject({ used: 6, rejected: 2 });
  expect(await responseTo(ask('/profile', { from: OTHER }))).toMatchObject({ status: 200 });
});

test('connections: a thousand from one IP address do not prevent others from connecting', async () => {
  const printed = jest.spyOn(console, 'log').mockImplementation();
  const exit = jest.spyOn(process, 'exit').mockImplementation();
  const server = new Server();
  await server.start(() =>
    loadSettings({ NODE_ENV: 'test', PORT: '0', DEMO_DATA: 'false', DATABASE_URL: databaseUrl() }),
  );
  const [, port] = /http:\S+:(\d+)/.exec(String(printed.mock.calls[0]![0]))!;
  const from = (localAddress: string) => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress });
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    // These connections are opened in one tick of the event loop, in which the service accepts none.
    const opened = many(1000, () => from(ONE));
    const begun = performance.now();
    const other = from(OTHER);
    await once(other, 'connect');
    times.push(performance.now() - begun);
    for (const socket of [...opened, other]) socket.destroy();
  }
  await server.stop(0);
  printed.mockRestore();
  exit.mockRestore();
  // If the queue of connections is full, the kernel tries again after a second at the earliest.
  expect(Math.min(...times)).toBeLessThan(900);
});

describe('health checks', () => {
  const health = (path = 'ready') => responseTo(ask(`/health/${path}`));

  test('have their own limit', async () => {
    await start({});
    Object.assign(admission(), { health: new ConcurrencyLimit({ accepted: 4 }) });
    const socket = await open();
    let text = '';
    socket.on('data', (data) => (text += data.toString()));
    socket.write('GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(6));
    await once(socket, 'close');
    expect(text.match(/HTTP\/1.1 \d+/g)!.map((line) => line.slice(-3))).toEqual([
      '200',
      '200',
      '200',
      '200',
      '503',
    ]);
    expect(admission().requests.rejected).toBe(0);
  });

  test('do not query the database', async () => {
    await start({});
    proxy!.freeze();
    expect([await health('ready'), await health('live')]).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  test('fail after requests were only rejected for a while, and succeed as soon as one runs', async () => {
    await start({ MAX_IN_FLIGHT: '4' });
    proxy!.freeze();
    many(5, () => ask('/profile'));
    await until(() => admission().requests.rejected > 0);
    const statuses = async (seconds: number) => {
      Object.assign(admission().requests, { rejectingSince: performance.now() - seconds * 1000 });
      return [(await health('ready')).status, (await health('live')).status];
    };
    expect(await statuses(10)).toEqual([200, 200]);
    expect(await statuses(30)).toEqual([503, 200]);
    expect(await statuses(130)).toEqual([503, 503]);
    proxy!.thaw();
    await until(() => admission().requests.accepted === 0);
    expect([await health('ready'), await health('live')]).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  test('are logged at debug level, and not as an error while the service drains', async () => {
    await start({ LOG_LEVEL: 'debug' });
    logged.splice(0);
    await health();
    app!.get(RequestGate).isDraining = true;
    expect(await health()).toMatchObject({ status: 503 });
    await until(() => logged.filter((line) => line.includes('/health/ready')).length === 2);
    const lines = logged.map(
      (line) => JSON.parse(line) as { level: string; route?: string; status?: number },
    );
    expect(lines.filter(({ level }) => level !== 'debug')).toEqual([]);
    expect(lines.filter(({ route }) => route === '/health/ready').map(({ status }) => status)).toEqual([
      200, 503,
    ]);
  });
});
