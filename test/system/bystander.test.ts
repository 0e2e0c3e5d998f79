import { execFile } from 'node:child_process';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { RequestGate } from '../../src/platform/http/request-gate';
import { Exchange, type InFlight } from '../../src/platform/http/in-flight';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { type Actor, make, openApp, useStore } from '../support/store';
import { moment, until } from '../support/time';

useStore();

const SECONDS = 3;
/** All on a quiet machine. On a busy one, the flood takes CPU time that the service then lacks. */
const SERVED = 0.6;
const run = promisify(execFile);

let flooder: Actor;
let bystander: Actor;
beforeAll(async () => {
  [flooder, bystander] = [await make.user(), await make.user()];
  // Short enough to be answered at once; a few dozen of such answers are more than the socket buffers hold.
  for (let i = 0; i < 150; i++) await make.game({ owner: flooder, short_text: 'x'.repeat(3900) });
});

let app: NestExpressApplication;
beforeEach(async () => {
  app = await openApp({ MAX_IN_FLIGHT: '60' });
});
afterEach(() => gracefulStop(app));

interface Seen {
  sent: number;
  right: number;
  /** How often it was answered something else, or nothing. */
  wrong: Record<string, number>;
}

async function send(kind: string, options: object): Promise<Seen> {
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const { stdout } = await run(process.execPath, [
    'test/support/sender.mjs',
    kind,
    JSON.stringify({ port, seconds: SECONDS, ...options }),
  ]);
  return JSON.parse(stdout) as Seen;
}

/** What a control client sees meanwhile: only a response within a few seconds is right. */
async function seenDuring(kind: string, options: object): Promise<Seen> {
  const flood = send(kind, { key: flooder.key, ...options });
  // Until the flood has come up.
  await moment(500);
  const steady = { key: bystander.key, path: '/profile', rate: 20, seconds: SECONDS - 1 };
  const seen = await send('bystander', steady);
  await flood;
  return seen;
}

const FLOODS: [string, string, object][] = [
  ['pipelines and breaks off in every way', 'pipelining', { connections: 20, pause: 400, path: '/profile' }],
  ['promises bodies and sends none', 'promises', { rate: 90 }],
  ['asks whether the service is ready', 'asking', { connections: 150, pause: 300, path: '/health/ready' }],
  ['does not read its answers', 'not reading', { connections: 30, pause: 400, path: '/profile/games' }],
  ['begins uploads and hangs up', 'aborting', { connections: 20, pause: 400 }],
];

test.each(FLOODS)(
  'somebody else %s',
  async (_what, kind, options) => {
    const { sent, right, wrong } = await seenDuring(kind, options);
    if (right < SERVED * sent) throw new Error(`${right} of ${sent} were right: ${JSON.stringify(wrong)}`);
    const { connections, health, requests, uploads } = app.get(RequestGate).inFlight;
    await until(() => connections.used + health.accepted + requests.accepted + uploads.used === 0, 15_000);
  },
  30_000,
);

/** No client has a limit of its own, and a request counts as running while its body is read. */
function withoutShares(inFlight: InFlight): void {
  const all = { accepted: 60, running: 60, each: 60, alone: 60 };
  Object.assign(inFlight.requests, { limits: all });
  jest.spyOn(Exchange.prototype, 'receive').mockImplementation((read) => read());
}
afterEach(() => jest.restoreAllMocks());

// Without shares, this flood takes everything for as long as it lasts. How much the others take depends on the machine.
const HELD = FLOODS.filter(([, kind]) => kind === 'promises');

test.each(HELD)(
  'control: without shares nobody is served while somebody %s',
  async (_what, kind, options) => {
    withoutShares(app.get(RequestGate).inFlight);
    const { sent, right } = await seenDuring(kind, options);
    expect(right).toBeLessThan(SERVED * sent);
  },
  30_000,
);
