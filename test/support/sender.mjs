// A client in a process of its own: its work takes no time from the service under test.
//   node sender.mjs KIND '{"port": 3000, "seconds": 3, ...}'
// Writes what it saw when it is done.
import { once } from 'node:events';
import { Agent, get, request as requestOf } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [kind, json] = process.argv.slice(2);
const {
  port,
  seconds,
  connections = 63,
  rate = 90,
  pause = 10,
  path = '/health/ready',
  key,
  record,
} = JSON.parse(json);
/** What a client on a busy machine waits for a response, in milliseconds. */
const LATE = 4000;
const end = performance.now() + seconds * 1000;
const isOver = () => performance.now() >= end;
const at = (path) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
const promise = (length) =>
  `POST /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`;

const open = async () => {
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1' });
  socket.on('error', () => socket.destroy());
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
  return socket;
};
const all = (work) => Promise.all(Array.from({ length: connections }, (_, i) => work(i)));
const close = (socket) => (socket.destroyed ? undefined : once(socket.destroy(), 'close'));

const BREAKS = [
  (socket) => socket.write('X\0'),
  (socket) => socket.end(),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.destroy(),
  (socket) => socket.end('GET /heal'),
  (socket) => socket.write(`${promise(600_000)}xxxx`),
  (socket) => socket.write('POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
];

const KINDS = {
  /** What everybody else sees: small requests at a steady pace, which are right unless they are late. */
  async bystander() {
    const agent = new Agent({ keepAlive: true });
    const headers = { authorization: `Bearer ${key}` };
    let [sent, right] = [0, 0];
    const wrong = {};
    const note = (what) => (wrong[what] = (wrong[what] ?? 0) + 1);
    const ask = () =>
      new Promise((done) => {
        const asked = performance.now();
        const request = get(
          { port, host: '127.0.0.1', localAddress: '127.0.0.2', path, agent, headers },
          (res) => {
            let text = '';
            res.on('data', (part) => (text += part));
            res.on('end', () => {
              const late = performance.now() - asked > LATE;
              if (res.statusCode === 200 && !late && text.startsWith('{')) right++;
              else note(late ? 'late' : res.statusCode);
              done();
            });
          },
        );
        request.setTimeout(LATE, () => request.destroy(new Error('no answer')));
        request.on('error', (error) => done(note(error.message)));
      });
    const asked = [];
    while (!isOver()) {
      sent++;
      asked.push(ask());
      await sleep(1000 / rate);
    }
    await Promise.all(asked);
    agent.destroy();
    return { sent, right, wrong };
  },
  /** Pipelines, and breaks off in every way. */
  async pipelining() {
    let sent = 0;
    await all(async (n) => {
      while (!isOver()) {
        const socket = await open();
        socket.resume();
        socket.write(at(path).repeat(9));
        if (n % 2) await sleep(Math.random() * 3);
        BREAKS[sent++ % BREAKS.length](socket);
        await sleep(pause);
        await close(socket);
      }
    });
    return { sent };
  },
  /** Promises bodies and sends none. */
  async promises() {
    const sockets = [];
    while (!isOver()) {
      sockets.push(
        open().then((socket) => {
          socket.write(promise(1000));
          return socket;
        }),
      );
      await sleep(1000 / rate);
    }
    for (const socket of await Promise.all(sockets)) socket.destroy();
    return { sent: sockets.length };
  },
  /** Asks on many connections as fast as it is answered. */
  async asking() {
    let sent = 0;
    const request = at(path);
    const sockets = await all(open);
    for (const socket of sockets) {
      socket.on('data', () => {
        sent++;
        if (!isOver()) setTimeout(() => socket.write(request), pause);
      });
      socket.write(request);
    }
    while (!isOver()) await sleep(50);
    for (const socket of sockets) socket.destroy();
    return { sent };
  },
  /** Asks for long answers and does not read them. */
  async 'not reading'() {
    let sent = 0;
    await all(async () => {
      while (!isOver()) {
        const socket = await open();
        socket.pause();
        // Again and again: what the system's buffers take in is no longer the server's.
        while (!isOver() && !socket.destroyed) {
          if (socket.writableLength === 0) {
            socket.write(at(path).repeat(10));
            sent += 10;
          }
          await sleep(pause);
        }
        socket.destroy();
      }
    });
    return { sent };
  },
  /** Imports one record on each connection, all at once, and says when all are sent. */
  async importing() {
    const agent = new Agent({ maxSockets: Infinity });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' };
    const options = { port, host: '127.0.0.1', agent, method: 'POST', path: '/operator/import', headers };
    const statuses = {};
    let sent = 0;
    await all(async (n) => {
      const one = requestOf(options);
      one.end(JSON.stringify({ ...record, id: n + 1 }), () => ++sent === connections && console.log('sent'));
      const [res] = await once(one, 'response');
      res.resume();
      statuses[res.statusCode] = (statuses[res.statusCode] ?? 0) + 1;
      await once(res, 'end');
    });
    return statuses;
  },
  /** Begins uploads and hangs up. */
  async aborting() {
    let sent = 0;
    await all(async () => {
      while (!isOver()) {
        const socket = await open();
        socket.write(promise(500_000));
        socket.write('x'.repeat(100_000 * Math.random()));
        sent++;
        await sleep(2 * pause * Math.random());
        socket.resetAndDestroy();
      }
    });
    return { sent };
  },
};

console.log(JSON.stringify(await KINDS[kind]()));
