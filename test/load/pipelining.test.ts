import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { RequestGate } from '../../src/platform/server/request-gate';
import { MAX_BODY_BYTES } from '../../src/platform/input/body';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { runIf } from '../support/run-if';
import { type Actor } from '../support/actor';
import { openApp, theApp, useStore } from '../support/app';
import { ok } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { sleep, until } from '../support/time';

useStore();

const KEY = 'a-key-that-is-known-before-its-user-is';
let user: Actor;
beforeAll(async () => {
  user = await make.user();
  await make.key({ owner: user, text: KEY });
});

const admission = (app: NestExpressApplication) => app.get(RequestGate).admission;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\n\r\n`;
const post = (head: string, body = '') =>
  `POST /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\n${head}\r\n\r\n${body}`;

async function open(app: NestExpressApplication): Promise<Socket> {
  const { hostname, port } = new URL(await app.getUrl());
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** The statuses of the responses on one connection until the server closes it. */
async function responsesTo(
  bytes: string,
  { closes = false, app = theApp() } = {},
): Promise<(number | 'not closed')[]> {
  const socket = await open(app);
  let text = '';
  let closed = false;
  socket.on('data', (data) => (text += data.toString()));
  socket.on('end', () => {
    closed = true;
    socket.end();
  });
  if (closes) socket.end(bytes);
  else socket.write(bytes);
  socket.setTimeout(3000, () => socket.destroy());
  await once(socket, 'close');
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  return closed ? statuses : [...statuses, 'not closed'];
}

// Responses that wait for the database, immediate ones, and ones from the shortcut.
describe.each(['/profile', '/health/live', '/wharf/latest?game_id=1&channel_name=x'])(
  'nine requests for %s',
  (path) => {
    const ahead = Array<number>(9).fill(path.startsWith('/wharf') ? 404 : 200);
    const requests = get(path).repeat(9);

    test.each<[string, string, number]>([
      ['garbage', 'X\0', 405],
      ['endless garbage', `\0${'x'.repeat(300_000)}`, 405],
      ['an invalid chunk', post('Transfer-Encoding: chunked', 'zz\r\n'), 400],
      ['a CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n', 405],
      ['no Host header', 'GET / HTTP/1.1\r\n\r\n', 400],
      ['an invalid credential', 'GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\x01b\r\n\r\n', 401],
      ['a body that is too large', post(`Content-Length: ${MAX_BODY_BYTES + 1}`, 'x'.repeat(100_000)), 413],
    ])('followed by %s: get their responses first', async (_what, bytes, status) => {
      expect(await responsesTo(requests + bytes)).toEqual([...ahead, status]);
    });

    test('followed by the end of the stream', async () => {
      expect(await responsesTo(requests, { closes: true })).toEqual(ahead);
    });

    test('followed by half a request', async () => {
      expect(await responsesTo(`${requests}GET /pro`, { closes: true })).toEqual([...ahead, 400]);
    });
  },
);

test('sends no second response for a body that breaks after its response', async () => {
  const broken = 'POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
  expect(await responsesTo(get('/profile') + broken)).toEqual([200, 404]);
});

test('serves nothing after a response that closes the connection', async () => {
  const app = await openApp();
  app.get(RequestGate).isDraining = true;
  const write = (title: string) => post(`Content-Length: ${title.length + 6}`, `title=${title}`);
  expect(await responsesTo(write('First') + write('Second'), { app })).toEqual([200]);
  expect(await sql('SELECT title FROM collections')).toEqual([{ title: 'First' }]);
  await gracefulStop(app);
});

const LOSSES: [string, (socket: Socket) => unknown][] = [
  ['garbage', (socket) => socket.write('X\0')],
  ['a close', (socket) => socket.destroy()],
  ['a reset', (socket) => socket.resetAndDestroy()],
  ['a half-close', (socket) => socket.end()],
  ['half a request', (socket) => socket.end('GET /pro')],
  ['a chunk that is none', (socket) => socket.write(post('Transfer-Encoding: chunked', 'zz\r\n'))],
  ['a body too large', (socket) => socket.write(post(`Content-Length: ${MAX_BODY_BYTES + 1}`, 'x'))],
  [
    'half a body, and a reset',
    (socket) => socket.write(post('Content-Length: 9', 'x'), () => socket.resetAndDestroy()),
  ],
];

/** Many connections that pipeline and are lost at any moment. */
async function lose(app: NestExpressApplication, loss: (socket: Socket) => unknown, connections: number) {
  await Promise.all(
    Array.from({ length: connections }, async (_, i) => {
      const socket = await open(app);
      socket.resume();
      socket.on('end', () => socket.end());
      socket.write(get(['/profile', '/health/live', '/nowhere'][i % 3]!).repeat(9));
      if (i % 4 > 0) await sleep(i % 40);
      loss(socket);
      if (!socket.destroyed) await once(socket, 'close');
    }),
  );
}

describe.each(LOSSES)('63 connections with nine requests each, and then %s', (_what, loss) => {
  test('release everything when they end, and report each request once', async () => {
    const app = theApp();
    const { connections, health, requests, uploads } = admission(app);
    // Connections of earlier tests, which may still close.
    const others = connections.used;
    const asked = new Set<IncomingMessage>();
    const reported: IncomingMessage[] = [];
    const observers = app.get(RequestGate).observers;
    observers.push((req) => void reported.push(req));
    const server = app.getHttpServer() as Server;
    const listen = (req: IncomingMessage) => void asked.add(req);
    server.on('request', listen);
    await lose(app, loss, 63);
    await until(() => connections.used <= others && admission(app).count === 0);
    await until(() => requests.accepted + health.accepted + uploads.used === 0);
    server.off('request', listen);
    observers.pop();
    expect(reported.length).toBeGreaterThan(63);
    expect(new Set(reported).size).toBe(reported.length);
    expect(reported.filter((req) => !asked.has(req))).toEqual([]);
    expect(await user.get('/profile')).toMatchObject({ status: 200 });
  });
});

// Node 24 reports the end of each response by itself.
const beforeNode24 = runIf(
  parseInt(process.versions.node, 10) < 24,
  'Node 24 reports the end of each response',
);
beforeNode24.test('control: without a listener on the socket, pipelined requests never end', async () => {
  const app = await openApp();
  Object.assign(admission(app), { disconnect: () => undefined });
  await lose(app, (socket) => socket.resetAndDestroy(), 12);
  await sleep(500);
  expect(admission(app).count).toBeGreaterThan(12);
  await app.close();
});

test('a listener for the end of a response is called for pipelined ones', async () => {
  const app = await openApp();
  const server = app.getHttpServer() as Server;
  let [accepted, closed, begun] = [0, 0, 0];
  server.on('connection', () => accepted++);
  server.on('request', (_req, res) => {
    begun++;
    res.on('close', () => closed++);
  });
  await lose(app, (socket) => socket.resetAndDestroy(), 20);
  // A busy server accepts some of the connections after they were reset, and still reads their requests.
  await until(() => accepted === 20 && admission(app).connections.used === 0);
  await until(() => admission(app).count === 0 && closed >= begun);
  // The pause would show a request that closes twice.
  await sleep(50);
  expect(closed).toBe(begun);
  await gracefulStop(app);
});

test('the attack that used to end the service', async () => {
  await lose(theApp(), (socket) => socket.write('X\0'), 63);
  expect(await user.get('/health/live')).toEqual(ok({ status: 'ok' }));
  expect(await user.get('/profile')).toMatchObject({ status: 200 });
});
