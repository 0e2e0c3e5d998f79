import { connect, type Socket } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { RequestGate } from '../../src/platform/server/request-gate';
import { type Actor } from '../support/actor';
import { openApp, theApp, theClock, useStore } from '../support/app';
import { make } from '../support/make';
import { until } from '../support/time';

useStore();

const FORM = 'application/x-www-form-urlencoded';

let owner: Actor;
let lenient: NestExpressApplication;
beforeAll(async () => {
  owner = await make.user();
  lenient = await openApp({ LENIENT_CLIENTS: 'true' });
});

const requestHead = (line: string, authorization = `Authorization: Bearer ${owner.key}\r\n`) =>
  `${line} HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: ${FORM}\r\nContent-Length: 1000\r\n\r\n`;

class SlowRequest {
  text = '';
  readonly closed: Promise<unknown>;
  private readonly socket: Socket;

  constructor(
    private readonly app: NestExpressApplication,
    url: string,
  ) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    // Writing after the connection was closed is an error.
    this.socket.on('error', () => undefined).on('data', (chunk) => (this.text += chunk.toString()));
    this.closed = new Promise((resolve) => this.socket.once('close', resolve));
  }

  /** Waits until the service has received the text. */
  async send(text: string): Promise<void> {
    this.socket.write(text);
    const { admission } = this.app.get(RequestGate);
    await until(() =>
      admission['inFlight'].some(
        ({ req: { socket } }) =>
          socket.remotePort === this.socket.localPort && socket.bytesRead === this.socket.bytesWritten,
      ),
    );
  }
}

async function begin(app: NestExpressApplication, head: string): Promise<SlowRequest> {
  const request = new SlowRequest(app, await app.getUrl());
  await request.send(`${head}title=Sent`);
  return request;
}

/** Advances the clock, and checks the deadlines, which a timer does otherwise. */
function advance(milliseconds: number): void {
  theClock().advance(milliseconds);
  for (const app of [theApp(), lenient]) app.get(RequestGate).admission['sweep']();
}

test('rejects a body that does not arrive within 8 seconds, and serves other clients in the meantime', async () => {
  theClock().stop();
  const pausing = await begin(theApp(), requestHead('POST /collections'));
  const dripping = await begin(theApp(), requestHead('POST /collections'));
  const ofGet = await begin(lenient, requestHead('GET /profile', ''));
  for (let second = 1; second < 8; second++) {
    advance(1000);
    await dripping.send('x');
  }
  advance(999);
  for (const app of [theApp(), lenient])
    expect((await fetch(`${await app.getUrl()}/profile`, { headers: owner.headers })).status).toBe(200);
  for (const { text } of [pausing, dripping, ofGet]) expect(text).toBe('');
  advance(1);
  for (const request of [pausing, dripping, ofGet]) {
    await request.closed;
    expect(request.text).toMatch(/^HTTP\/1\.1 408 [^]*\{"errors":\["request timeout"\]\}$/);
  }
});

test('closes the connection after 8 seconds if the body continues after the response', async () => {
  theClock().stop();
  const request = await begin(theApp(), requestHead('POST /collections', ''));
  await until(() => request.text !== '');
  expect(request.text).toMatch(/^HTTP\/1\.1 401 /);
  advance(7999);
  await request.send('x');
  advance(1);
  await request.closed;
});
