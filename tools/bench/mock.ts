import { loadavg } from 'node:os';
import { resolve } from 'node:path';
import type * as Mock from '../../client/mock';
import { SEED } from './mock-seed';
import { median } from './report';

// The compiled script is in dist, and the client isn't compiled.
const { startMock } = require(resolve('client', 'mock.js')) as typeof Mock; // eslint-disable-line @typescript-eslint/no-require-imports -- CommonJS

const STARTS = 5;
const RESETS = 100;

async function time(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function run(): Promise<void> {
  const durations: Record<'ready' | 'reset' | 'stopped', number[]> = { ready: [], reset: [], stopped: [] };
  for (let n = 0; n < STARTS; n++) {
    let store!: Mock.MockStore;
    durations.ready.push(await time(async () => (store = await startMock({ seed: SEED }))));
    for (let reset = 0; reset < RESETS / STARTS; reset++)
      durations.reset.push(await time(() => store.reset()));
    durations.stopped.push(await time(() => store.stop()));
  }
  console.log(`Milliseconds: median, shortest and longest. Load average: ${loadavg()[0]!.toFixed(1)}.`);
  for (const [name, all] of Object.entries(durations))
    console.log(name.padEnd(8), ...[median(all), Math.min(...all), Math.max(...all)].map(Math.round));
}

void run();
