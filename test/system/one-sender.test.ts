import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, type Server as HttpServer, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Exchange } from '../../src/platform/http/in-flight';
import { Capacity } from '../../src/platform/http/senders';
import { loadSettings } from '../../src/platform/config/settings';
import { FrontDoor } from '../../src/platform/http/front-door';
import { MAX_BODY } from '../../src/platform/http/parameter-sources';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { Server } from '../../src/server';
import { FaultyProxy } from '../support/proxy';
import { type Actor, databaseUrl, type Environment, logged, make, openApp, useStore } from '../support/store';
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

const inFlight = () => app!.get(FrontDoor).inFlight;

async function start(environment: Environment): Promise<void> {
  proxy = await FaultyProxy.before(databaseUrl());
  app = await openApp({ DATABASE_URL: proxy.through(databaseUrl()), ...environment });
  await answerTo(ask('/profile'));
}

/** Asks from an address, and waits for nothing. */
function ask(
  path: string,
  { from = ONE, headers = {} }: { from?: string; headers?: object } = {},
): ClientRequest {
  const { port } = new URL(baseUrlOf(app!));
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

const baseUrlOf = (one: NestExpressApplication) => {
  const { port } = one.getHttpServer().address() as { port: number };
  return `http://127.0.0.1:${port}`;
};

async function answerTo(one: ClientRequest): Promise<{ status: number; connection: string | undefined }> {
  const [res] = (await once(one, 'response')) as [IncomingMessage];
  res.resume();
  return { status: res.statusCode!, connection: res.headers.connection };
}

async function open(from = ONE): Promise<Socket> {
  const { port } = new URL(baseUrlOf(app!));
  const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** The head of a request whose body does not come. */
const promise = (length: number, method = 'POST') =>
  `${method} /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${user.key}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;

async function promised(length: number, { from = ONE, method = 'POST' } = {}): Promise<Socket> {
  const socket = await open(from);
  socket.write(promise(length, method));
  return socket;
}

const many = <T>(n: number, work: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => work(i));

describe('slots, with a database that hangs', () => {
  test('one address gets three quarters, whatever it says of itself, and another gets its part', async () => {
    await start({ MAX_IN_FLIGHT: '40' });
    proxy!.freeze();
    many(60, (i) => ask('/profile', { headers: { 'x-forwarded-for': `203.0.113.${i}` } }));
    await until(() => inFlight().slots.refusals === 30);
    expect(inFlight().slots.used).toBe(30);
    many(20, () => ask('/profile', { from: OTHER }));
    await until(() => inFlight().slots.refusals === 40);
    expect(inFlight().slots.used).toBe(40);
  });

  test('behind a proxy that is trusted, whose address it is that it forwards', async () => {
    await start({ MAX_IN_FLIGHT: '40', TRUSTED_PROXIES: 'loopback' });
    proxy!.freeze();
    const headers = (address: string) => ({ headers: { 'x-forwarded-for': `198.51.100.1, ${address}` } });
    many(60, (i) => ask('/profile', headers(`2001:db8::${i}`)));
    await until(() => inFlight().slots.refusals === 30);
    many(20, () => ask('/profile', headers('2001:db8:0:1::1')));
    await until(() => inFlight().slots.refusals === 40);
    expect(inFlight().slots.used).toBe(40);
  });

  test('who asks and hangs up holds a slot for as long as the work goes on, and no longer', async () => {
    await start({ MAX_IN_FLIGHT: '40' });
    proxy!.freeze();
    const gone = many(20, () => ask('/profile'));
    await until(() => inFlight().slots.used === 20);
    for (const { socket } of gone) (socket as Socket).resetAndDestroy();
    await until(() => inFlight().count === 0);
    expect(inFlight().slots.used).toBe(20);
    await until(() => inFlight().slots.used === 0);
  });
});

describe('bodies that are promised', () => {
  test('take no slot, and are told after eight seconds that they took too long', async () => {
    await start({ MAX_IN_FLIGHT: '4' });
    const waiting = await Promise.all(many(50, () => promised(1000)));
    await until(() => inFlight().count === 50);
    expect([inFlight().slots.used, inFlight().uploads.used]).toEqual([0, 50 * 16 * 1024]);
    expect(await answerTo(ask('/profile'))).toMatchObject({ status: 200 });
    const texts = await Promise.all(
      waiting.map(async (socket) => {
        let text = '';
        socket.on('data', (data) => (text += data.toString()));
        await once(socket, 'close');
        return text.slice(0, 12);
      }),
    );
    expect(new Set(texts)).toEqual(new Set(['HTTP/1.1 408']));
    await until(() => inFlight().uploads.used === 0);
  }, 30_000);

  test('one address may promise three quarters of what all may, and another may still upload', async () => {
    await start({});
    const { uploads } = inFlight();
    const most = (uploads.total * 3) / 4 / MAX_BODY;
    await Promise.all(many(most, () => promised(MAX_BODY)));
    await until(() => inFlight().count === most);
    const refused = await promised(MAX_BODY);
    const [data] = (await once(refused, 'data')) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1.1 503 [^]*Connection: close[^]*service unavailable/);
    const socket = await promised('title=x'.length, { from: OTHER });
    socket.write('title=x');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  });

  test('need a slot when they are here', async () => {
    await start({ MAX_IN_FLIGHT: '4' });
    const socket = await promised('title=x'.length);
    await until(() => inFlight().uploads.used > 0);
    proxy!.freeze();
    many(3, () => ask('/profile'));
    await until(() => inFlight().slots.used === 3);
    socket.write('title=x');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 503 /);
    expect(inFlight().uploads.used).toBe(0);
  });

  test.each(['GET', 'POST'])(
    'of %s, answered before they came, count until they are here',
    async (method) => {
      await start({});
      user = user.with('no key') as Actor;
      const socket = await promised(5, { method });
      await once(socket, 'data');
      await until(() => inFlight().count === 0);
      expect(inFlight().uploads.used).toBe(16 * 1024);
      socket.write('12345');
      await until(() => inFlight().uploads.used === 0);
      expect(socket.destroyed).toBe(false);
    },
  );

  test('and are broken off count no more', async () => {
    await start({});
    const begun = await Promise.all(many(20, () => promised(400_000)));
    for (const socket of begun) socket.write('x'.repeat(100_000));
    await until(() => inFlight().count === 20);
    for (const socket of begun) socket.resetAndDestroy();
    await until(() => inFlight().count === 0 && inFlight().uploads.used === 0);
  });
});

describe('bodies in tiny chunks', () => {
  const head = () => promise(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
  const chunks = (n: number) => '1\r\nx\r\n'.repeat(n);

  test('are refused when the chunks are too many for their bytes, and not read on', async () => {
    await start({});
    const socket = await open();
    const arrived = jest.spyOn(Exchange.prototype, 'pieceArrived');
    socket.write(head() + chunks(10_000));
    expect(String(await once(socket, 'data'))).toMatch(
      /^HTTP\/1.1 413 [^]*Connection: close[^]*\{"errors":\["too many chunks"\]\}$/,
    );
    socket.write(chunks(10_000));
    await once(socket, 'close');
    expect(arrived.mock.calls.length).toBeLessThanOrEqual(10_000);
  });

  test('are read where there are few, or the body is large', async () => {
    await start({});
    const socket = await open();
    socket.write(`${head()}${'6\r\ntitle=\r\n'}${chunks(60)}0\r\n\r\n`);
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 [^]*keep-alive[^]*"title":"x{60}"/);
    socket.write(head() + `40\r\n${'a=1&'.repeat(16)}\r\n`.repeat(50) + chunks(900) + '0\r\n\r\n');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  });

  test('are not read after an answer that did not wait for them', async () => {
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
    await until(() => inFlight().uploads.used === 0);
  });
});

test('turns of the event loop: whoever asks little does not wait for all requests of whoever asks much', async () => {
  await start({});
  const quiet = await open(OTHER);
  const noisy = await Promise.all(many(600, () => open()));
  const answered: string[] = [];
  app!.get(FrontDoor).observers.push(({ url }) => answered.push(url!));
  // The kernel has all of them before the service reads the first.
  for (const socket of noisy) socket.write('GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n');
  quiet.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => answered.length === 601);
  expect(answered.indexOf('/health/live')).toBeLessThan(200);
});

test('turns of the event loop: of one address so many and no more wait', async () => {
  await start({});
  const quiet = await open(OTHER);
  const noisy = await Promise.all(many(250, () => open()));
  await until(() => inFlight().connections.used === 251);
  const statuses: Record<number, number> = {};
  app!.get(FrontDoor).observers.push((_, { statusCode }) => {
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
  });
  for (const socket of noisy)
    socket.resume().write('GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(9));
  await until(() => statuses[200] !== undefined && inFlight().count === 0);
  // 64 are begun and 2,000 wait. Each connection of the others is refused once, and closes.
  expect(statuses).toEqual({ 200: 64 + 2000, 503: Math.ceil((250 * 9 - 64 - 2000) / 9) });
  quiet.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(String(await once(quiet, 'data'))).toMatch(/^HTTP\/1.1 200 /);
});

test('connections: one address gets three quarters, and another is let in', async () => {
  await start({ MAX_CONNECTIONS: '8' });
  await until(() => inFlight().connections.used === 0);
  const opened = await Promise.all(many(8, () => open()));
  await until(() => opened.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length === 2);
  expect(inFlight().connections).toMatchObject({ used: 6, refusals: 2 });
  expect(await answerTo(ask('/profile', { from: OTHER }))).toMatchObject({ status: 200 });
});

test('connections: a thousand of one address at once keep nobody else from connecting', async () => {
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
  // All in one turn of the event loop, in which the service accepts none.
  many(1000, () => from(ONE));
  const begun = performance.now();
  await once(from(OTHER), 'connect');
  const took = performance.now() - begun;
  await server.stop(0);
  printed.mockRestore();
  exit.mockRestore();
  expect(took).toBeLessThan(900);
});

describe('health', () => {
  const health = (path = 'ready') => answerTo(ask(`/health/${path}`));

  test('is bounded by itself, and takes no slot', async () => {
    await start({});
    Object.assign(inFlight(), { health: new Capacity('health', 4) });
    const socket = await open();
    let text = '';
    socket.on('data', (data) => (text += data.toString()));
    socket.write('GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(6));
    await until(() => text.match(/HTTP/g)?.length === 6);
    expect(text.match(/HTTP\/1.1 \d+/g)!.map((line) => line.slice(-3))).toEqual([
      ...['200', '200', '200'],
      ...['503', '503', '503'],
    ]);
    expect(inFlight().slots.refusals).toBe(0);
  });

  test('asks nothing of the database', async () => {
    await start({});
    proxy!.freeze();
    expect([await health('ready'), await health('live')]).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  test('fails when no slot was given for long although somebody asked, and is well as soon as one is', async () => {
    await start({ MAX_IN_FLIGHT: '4' });
    proxy!.freeze();
    many(4, () => ask('/profile'));
    await until(() => inFlight().slots.refusals > 0);
    const statuses = async (seconds: number) => {
      Object.assign(inFlight(), { refusedSince: performance.now() - seconds * 1000 });
      return [(await health('ready')).status, (await health('live')).status];
    };
    expect(await statuses(10)).toEqual([200, 200]);
    expect(await statuses(30)).toEqual([503, 200]);
    expect(await statuses(130)).toEqual([503, 503]);
    proxy!.thaw();
    await until(() => inFlight().slots.used === 0);
    expect([await health('ready'), await health('live')]).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  test('a probe is a line for debug, and one that fails while the service drains is no error', async () => {
    await start({ LOG_LEVEL: 'debug' });
    logged.splice(0);
    await health();
    app!.get(FrontDoor).draining = true;
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
