import { readdirSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { InFlightRequest } from '../../src/platform/server/admission';
import { RequestGate } from '../../src/platform/server/request-gate';
import { FILES_EACH, FileResponses } from '../../src/uploads/file-responses';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { ControlClient } from '../support/floods/control-client';
import { FLOOD_FILE } from '../support/floods/downloads';
import { attack } from '../support/floods/flood';
import { CpuWait } from '../support/floods/metrics';
import { type PatternName, PATTERNS } from '../support/floods/patterns';
import { importLines, OPERATOR_TOKEN } from '../support/importing';
import { runIf } from '../support/run-if';
import { databaseUrl, openApp, useStore } from '../support/app';
import { sleep, until } from '../support/time';
import {
  ATTACKER,
  CONTROL_CLIENTS,
  OPERATOR_TOKEN as FLOODED_TOKEN,
  tenantRecords,
} from '../support/world/world';

useStore({ OPERATOR_TOKEN });

const [CONTROL_CLIENT] = CONTROL_CLIENTS;
const SECONDS = 1;
/** The factor by which a response may be slower than without a flood, and the milliseconds it may take in any case. */
const SLOWER = 50;
const SOON = 1000;
/**
 * The share of responses that may be late on any machine: a flood's first connections arrive at once. The chaos
 * scenario `floods` allows none unless the machine is short of CPU time.
 */
const MOST_LATE = 0.25;

beforeAll(() => importLines(...[ATTACKER, CONTROL_CLIENT!].flatMap(tenantRecords)));

let files: string;
beforeAll(async () => {
  files = await mkdtemp(join(tmpdir(), 'gamewharf-floods-'));
});
afterAll(() => rm(files, { recursive: true }));

let app: NestExpressApplication;
beforeEach(async () => {
  app = await openApp({
    MAX_IN_FLIGHT: '60',
    OPERATOR_TOKEN: FLOODED_TOKEN,
    FILES_DIR: files,
    SIGN_UP: 'true',
  });
});
afterEach(() => gracefulStop(app));

/**
 * How many descriptors of the flooded file this process has; 0 where only Linux tells. Synchronous, because the flood
 * keeps the threads for files busy.
 */
function openFiles(): number {
  if (process.platform !== 'linux') return 0;
  return readdirSync('/proc/self/fd').filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`) === join(files, FLOOD_FILE);
    } catch {
      return false;
    }
  }).length;
}

/** Returns a function that ends the watch and returns the largest number of open files. */
function watchOpenFiles(): () => number {
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, openFiles())), 200);
  return () => {
    clearInterval(timer);
    return most;
  };
}

// A file is closed a moment after its response.
const MOST_FILES = 2 * FILES_EACH;

let aloneMs: number | undefined;

/** The control client's slowest response without a flood, which depends only on the machine. */
async function slowestAlone(base: string): Promise<number> {
  const alone = await ControlClient.start(base, CONTROL_CLIENT!);
  await sleep(500);
  return (await alone.stop()).slowest_ms;
}

async function servedDuring(
  pattern: PatternName,
  { connects = false, seconds = SECONDS } = {},
): Promise<{ isServed: boolean; seen: string }> {
  const base = await app.getUrl();
  aloneMs ??= await slowestAlone(base);
  const in_time = Math.max(SOON, SLOWER * aloneMs);
  const controlClient = await ControlClient.start(base, CONTROL_CLIENT!, in_time, connects);
  // The service runs in this process.
  const cpu = new CpuWait(process.pid);
  const report = await attack({ base, database: databaseUrl(), files, pattern, seconds, seed: 24 });
  expect(report).toMatchObject({ failed: 0, broken: [] });
  await controlClient.stop();
  const { share, isStarved } = cpu;
  const seen = `${controlClient}, waited for a CPU ${(share * 100).toFixed(0)} % of the time`;
  return { isServed: controlClient.isServed(isStarved ? 1 : MOST_LATE), seen };
}

// Many tokens need rate limits.
const NAMES = (Object.keys(PATTERNS) as PatternName[]).filter((name) => name !== 'many-tokens');

test.each(NAMES)('serves a control client during a flood of %s', async (pattern) => {
  const { isServed, seen } = await servedDuring(pattern);
  if (!isServed) throw new Error(seen);
  const { connections, health, requests, uploads } = app.get(RequestGate).admission;
  await until(() => connections.used + health.accepted + requests.accepted + uploads.used === 0);
});

const onLinux = runIf(process.platform === 'linux', 'only Linux lists open files');
const DOWNLOADS = NAMES.filter((name) => name.endsWith('-downloads'));

test.each(DOWNLOADS)('serves a control client that connects for each request during %s', async (pattern) => {
  const mostFiles = watchOpenFiles();
  const { isServed, seen } = await servedDuring(pattern, { connects: true });
  if (!isServed) throw new Error(seen);
  expect(mostFiles()).toBeLessThanOrEqual(MOST_FILES);
  await until(() => openFiles() === 0);
});

// On an idle machine the client may be served in spite of the files.
onLinux.test(
  'control: without a limit of downloads, many files are open or the client is not served',
  async () => {
    const all = { accepted: Infinity, running: Infinity, each: Infinity, soleClientLimit: Infinity };
    Object.assign(app.get(FileResponses).limit, { limits: all });
    const mostFiles = watchOpenFiles();
    const { isServed } = await servedDuring('slow-downloads', { seconds: 8 });
    expect(isServed && mostFiles() <= MOST_FILES).toBe(false);
  },
);

afterEach(() => jest.restoreAllMocks());

test('control: without limits per client, unfinished bodies use up the concurrency limit', async () => {
  const all = { accepted: 60, running: 60, each: 60, soleClientLimit: 60 };
  Object.assign(app.get(RequestGate).admission.requests, { limits: all });
  // Counts a request as running while its body is read.
  jest.spyOn(InFlightRequest.prototype, 'receive').mockImplementation((read) => read());
  expect((await servedDuring('promised-bodies')).isServed).toBe(false);
});
