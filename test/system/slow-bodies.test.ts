import { connect } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { type Actor, baseUrl, make, openApp, useStore } from '../support/store';

useStore();

const FORM = 'application/x-www-form-urlencoded';
// The server allows ten seconds. The rest is for a busy machine.
const WITHIN = 20_000;

let owner: Actor;
let lenient: NestExpressApplication;
beforeAll(async () => {
  owner = await make.user();
  lenient = await openApp({ LENIENT_CLIENTS: 'true' });
});

const headOf = (line: string, authorization = `Authorization: Bearer ${owner.key}\r\n`) =>
  `${line} HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: ${FORM}\r\nContent-Length: 1000\r\n\r\n`;

/** Sends a body that never ends; returns everything received until the server closed the connection. */
async function sendSlowly(url: string, head: string, { drips }: { drips: boolean }) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const began = performance.now();
  let text = '';
  // Writing after the connection was closed is an error.
  socket.on('error', () => undefined).on('data', (chunk) => (text += chunk.toString()));
  socket.write(`${head}title=Sent`);
  const timer = drips ? setInterval(() => socket.write('x'), 200) : undefined;
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(timer);
  return { text, ms: performance.now() - began };
}

test('rejects a body that does not arrive within ten seconds, and serves other clients in the meantime', async () => {
  const strictUrl = baseUrl();
  const lenientUrl = await lenient.getUrl();
  const slow = Promise.all([
    sendSlowly(strictUrl, headOf('POST /collections'), { drips: false }),
    sendSlowly(strictUrl, headOf('POST /collections'), { drips: true }),
    sendSlowly(lenientUrl, headOf('GET /profile', ''), { drips: false }),
  ]);
  const rejected = { done: false };
  void slow.then(() => (rejected.done = true));
  for (const url of [strictUrl, lenientUrl])
    expect((await fetch(`${url}/profile`, { headers: owner.headers })).status).toBe(200);
  expect(rejected.done).toBe(false);
  for (const { text, ms } of await slow) {
    expect(text).toMatch(/^HTTP\/1\.1 408 [^]*\{"errors":\["request timeout"\]\}$/);
    expect(ms).toBeLessThan(WITHIN);
  }
}, 60_000);

test('closes the connection within ten seconds if the body continues after the response', async () => {
  const { text, ms } = await sendSlowly(baseUrl(), headOf('POST /collections', ''), { drips: true });
  expect(text).toMatch(/^HTTP\/1\.1 401 /);
  expect(ms).toBeLessThan(WITHIN);
}, 60_000);
