/** Whether ours stays as fast where the store is ten times as large: the same server on both stores, in turns. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { connectTo } from '../../src/operator/import/import-records';
import { CONNECTIONS, inTurns, measure, settle } from './measure';
import { machine, type Measured, median, ratioOf, shown, table } from './report';
import { type Workload, workloadOf } from './requests';
import { LoadGenerator, MeasuredServer } from './servers';
import { openStore, type Store } from './store';
import { type Endpoint, everyKey, READS } from './workload';

// All in seconds. Until V8 has compiled what an endpoint needs.
const COMPILED = 4;
// At most, for all requests of an endpoint once, where a server remembers what it was asked.
const PASS = 30;
const LEAD_IN = 0.5;

const { values } = parseArgs({
  options: {
    scales: { type: 'string', default: '1,10' },
    pairs: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '1' },
    endpoints: { type: 'string', default: '' },
    'keep-reports': { type: 'boolean', default: false },
  },
});
const pairs = Number(values.pairs);
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const scales = values.scales.split(',').map(Number);
const say = (line: string) => console.error(line);
const chosen = READS.filter(
  ({ name }) => values.endpoints === '' || values.endpoints.split(',').includes(name),
);

/** One of the stores, with what was measured on it: a list for each endpoint. */
interface Site {
  store: Store;
  client: Client;
  keys: Endpoint;
  asksOfKeys: Workload;
  workloads: Workload[];
  measured: Measured[][];
}

async function openSite(scale: number): Promise<Site> {
  const store = await openStore(scale, say);
  try {
    const keys = everyKey(store.size.api_keys);
    const asksOfKeys = await workloadOf(keys, store);
    const workloads: Workload[] = [];
    for (const endpoint of chosen) workloads.push(await workloadOf(endpoint, store));
    const client = await connectTo({ DATABASE_URL: store.url });
    return { store, client, keys, asksOfKeys, workloads, measured: chosen.map(() => []) };
  } catch (error) {
    await store.stop();
    throw error;
  }
}

async function warm(
  server: MeasuredServer,
  load: LoadGenerator,
  workload: Workload,
  { requests }: Endpoint,
): Promise<void> {
  const enough = { seconds: COMPILED, from: 0, leadIn: 0 };
  const { rate } = await measure(server, load, workload, enough);
  if (requests === undefined) return;
  await measure(server, load, workload, { ...enough, seconds: Math.min(PASS, requests / rate) });
}

/**
 * All endpoints with one new process on each store. Two processes of one program on one store differ for as long as they
 * live, at times by a quarter. So there are several pairs, and the one that is started first is not always of the same store.
 */
async function measurePair(sites: Site[], load: LoadGenerator): Promise<void> {
  const running: { site: Site; server: MeasuredServer }[] = [];
  try {
    for (const site of sites) running.push({ site, server: await MeasuredServer.start('ours', site.store) });
    // Who asks has asked before: of a hundred thousand keys most would be met for the first time while they are measured.
    for (const { site, server } of running) await warm(server, load, site.asksOfKeys, site.keys);
    for (const [i, endpoint] of chosen.entries()) {
      for (const { site, server } of running) await warm(server, load, site.workloads[i]!, endpoint);
      await inTurns(running, rounds, async ({ site, server }, from) => {
        const stretch = { seconds, from, leadIn: LEAD_IN };
        site.measured[i]!.push(await measure(server, load, site.workloads[i]!, stretch));
        await settle(server, site.client);
      });
    }
  } finally {
    for (const { server } of running) await server.stop();
  }
}

function rowOf({ name }: Endpoint, [small, large]: Measured[][]): string[] {
  const rates = [small!, large!].map((list) => list.map(({ rate }) => rate));
  return [name, shown(ratioOf(rates[1]!, rates[0]!)), ...rates.map((list) => median(list).toFixed(0))];
}

function report(sites: Site[]): string {
  const rows = chosen.map((endpoint, i) =>
    rowOf(
      endpoint,
      sites.map(({ measured }) => measured[i]!),
    ),
  );
  const [one, ten] = sites.map(({ store }) => machine(store));
  const { database, import: imported, ...same } = ten!;
  return [
    '# Results of `npm run bench:growth`',
    `${CONNECTIONS} connections; ${pairs} pairs of processes, ${rounds} paired rounds of ${seconds} s with each. Requests a second on the store of scale ${scales[1]} divided by those on the one of scale ${scales[0]} in the same round: median (lowest–highest).`,
    table(
      ['machine', ''],
      Object.entries({
        ...same,
        [`database of scale ${scales[0]}`]: one!.database!,
        [`database of scale ${scales[1]}`]: database!,
        [`import of scale ${scales[1]}`]: imported ?? '',
      }),
    ),
    table(['endpoint', 'ratio', ...scales.map((scale) => `requests/s at scale ${scale}`)], rows),
    '',
  ].join('\n\n');
}

async function main(): Promise<void> {
  const sites: Site[] = [];
  const load = new LoadGenerator();
  try {
    for (const scale of scales) sites.push(await openSite(scale));
    for (let pair = 0; pair < pairs; pair++) {
      await measurePair(pair % 2 === 0 ? sites : sites.toReversed(), load);
      say(`after ${pair + 1} of ${pairs} pairs:\n${report(sites)}`);
    }
    const text = report(sites);
    if (!values['keep-reports']) writeFileSync(join(process.cwd(), 'tools', 'bench', 'GROWTH.md'), text);
    console.log(text);
  } finally {
    load.stop();
    for (const { client, store } of sites) {
      await client.end();
      await store.stop();
    }
  }
}

void main();
