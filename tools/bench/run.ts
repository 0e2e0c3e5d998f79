import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { connectTo } from '../../src/operator/import/import-records';
import { CONNECTIONS, alternately, measure, settle } from './measure';
import { compareResponses, prepareWorkload, type Workload } from './requests';
import { type EndpointResult, type Figure, machine, median, type Results, writeReports } from './report';
import { LoadGenerator, MeasuredServer, type ServerName } from './servers';
import { openStore, type Store } from './store';
import { READS } from './workload';
import { measureWrites } from './writes';

const QUICK_SCALE = 0.05;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    scale: { type: 'string' },
    processes: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    endpoints: { type: 'string', default: '' },
    servers: { type: 'string' },
    load: { type: 'string' },
    'keep-reports': { type: 'boolean', default: false },
  },
});
const quick = values.quick;
// Seconds until a new process has reached its final speed: V8 compiles while it runs.
const COMPILED = quick ? 1 : 5;
// Seconds until the code of one endpoint is compiled: a page of a hundred games allows only some hundred requests per second.
const WARMED_UP = quick ? 0.2 : 4;
const LEAD_IN = quick ? 0.05 : 0.5;
// Modules are still compiled for a moment after the start.
const SETTLED = 3000;
const SETTLING_ROUNDS = 4;
// The slowest server takes a second for a response.
const SAMPLED = quick ? 10 : 60;
const scale = Number(values.scale ?? (quick ? QUICK_SCALE : 1));
// Two processes of the same program differ permanently, sometimes by a quarter: docs/explanation/performance.md.
const processes = Number(values.processes ?? (quick ? 1 : 3));
const rounds = Number(values.rounds ?? 2);
const seconds = Number(values.seconds ?? (quick ? 0.25 : 2));
/** The share of the rate that the slowest server reaches during the warm-up. Without it, the load is not limited. */
const share = values.load === undefined ? undefined : Number(values.load);
const names = (values.servers ?? 'ours,floor,stock').split(',') as ServerName[];
const chosen = READS.filter(({ name }) =>
  values.endpoints === '' ? true : values.endpoints.split(',').some((part) => name === part.trim()),
);

const say = (line: string) => console.error(line);

async function measureEndpoint(
  all: MeasuredServer[],
  load: LoadGenerator,
  workload: Workload,
  client: Client,
): Promise<EndpointResult> {
  const servers = workload.withoutStock ? all.filter(({ name }) => name !== 'stock') : all;
  await compareResponses(servers, workload, SAMPLED);
  const measured: EndpointResult['measured'] = {};
  const rates: number[] = [];
  for (const server of servers) {
    rates.push((await measure(server, load, workload, { seconds: WARMED_UP, from: 0, leadIn: 0 })).rate);
    await settle(server, client);
    measured[server.name] = [];
  }
  const rate = share === undefined ? undefined : share * Math.min(...rates);
  const one = async (server: MeasuredServer, from: number) => {
    const result = await measure(server, load, workload, { seconds, from, leadIn: LEAD_IN, rate });
    await settle(server, client);
    return result;
  };
  // The first rounds after full load are slower, because V8 compacts its heap.
  if (rate !== undefined)
    await alternately(servers, SETTLING_ROUNDS, async (...turn) => void (await one(...turn)));
  await alternately(servers, rounds, async (server, from) => {
    measured[server.name]!.push(await one(server, from));
  });
  return { endpoint: workload.endpoint, measured };
}

const startAll = async (store: Store): Promise<MeasuredServer[]> => {
  const servers: MeasuredServer[] = [];
  for (const name of names) servers.push(await MeasuredServer.start(name, store));
  return servers;
};

const stopAll = async (servers: MeasuredServer[]) => {
  for (const server of servers) await server.stop();
};

const compiled = (server: MeasuredServer, load: LoadGenerator, workload: Workload) =>
  measure(server, load, workload, { seconds: COMPILED, from: 0, leadIn: 0 });

async function measureStarts(store: Store): Promise<number[]> {
  const starts: number[] = [];
  for (let i = 0; i < (quick ? 1 : 3); i++) {
    const ours = await MeasuredServer.start('ours', store);
    starts.push(ours.readyAfter);
    await ours.stop();
  }
  return starts;
}

/** The memory before the first request. */
async function idleMemory(store: Store): Promise<Results['idle']> {
  const servers = await startAll(store);
  try {
    await sleep(SETTLED);
    const idle: Results['idle'] = {};
    for (const server of servers) idle[server.name] = (await server.usage()).rss;
    return idle;
  } finally {
    await stopAll(servers);
  }
}

/** Measures all endpoints with one process of each server, and adds the results to those of other processes. */
async function measureProcesses(
  store: Store,
  load: LoadGenerator,
  client: Client,
  workloads: Workload[],
  into: Map<string, EndpointResult>,
): Promise<void> {
  const servers = await startAll(store);
  try {
    for (const server of servers) await compiled(server, load, workloads[0]!);
    for (const workload of workloads) {
      const { endpoint, measured } = await measureEndpoint(servers, load, workload, client);
      const result = into.get(endpoint) ?? { endpoint, measured: {} };
      into.set(endpoint, result);
      for (const [name, some] of Object.entries(measured)) (result.measured[name] ??= []).push(...some);
      say(formatResult(result));
    }
  } finally {
    await stopAll(servers);
  }
}

async function measureServerWrites(
  store: Store,
  load: LoadGenerator,
  workload: Workload,
): Promise<Results['writes']> {
  const ours = await MeasuredServer.start('ours', store);
  try {
    await compiled(ours, load, workload);
    const times = { rounds: processes * rounds, seconds };
    return await measureWrites(store, ours, load, { connections: CONNECTIONS, ...times });
  } finally {
    await ours.stop();
  }
}

async function measureAll(store: Store): Promise<Results> {
  const load = new LoadGenerator();
  const client = await connectTo({ DATABASE_URL: store.url });
  try {
    const starts = await measureStarts(store);
    const idle = quick ? {} : await idleMemory(store);
    const workloads: Workload[] = [];
    for (const endpoint of chosen) workloads.push(await prepareWorkload(endpoint, store));
    const endpoints = new Map<string, EndpointResult>();
    for (let process = 1; process <= processes; process++) {
      say(`process ${process} of ${processes} of each server`);
      await measureProcesses(store, load, client, workloads, endpoints);
    }
    const all = values.endpoints === '' && names.includes('ours');
    const writes = all ? await measureServerWrites(store, load, workloads[0]!) : [];
    return {
      machine: machine(store),
      scale,
      processes,
      rounds,
      seconds,
      connections: CONNECTIONS,
      starts,
      idle,
      endpoints: [...endpoints.values()],
      writes,
    };
  } finally {
    load.stop();
    await client.end();
  }
}

function formatResult({ endpoint, measured }: EndpointResult): string {
  const of = (name: string, what: Figure) => median(measured[name]!.map((one) => one[what]));
  const figures = Object.keys(measured).map(
    (name) =>
      `${name} ${of(name, 'rate').toFixed(0)}/s p99 ${of(name, 'p99').toFixed(1)} ms cpu ${of(name, 'cpu').toFixed(0)} us`,
  );
  return `${endpoint}: ${figures.join('; ')}`;
}

async function main(): Promise<void> {
  const store = await openStore(scale, say);
  try {
    const results = await measureAll(store);
    const table = writeReports(results, !values['keep-reports'] && share === undefined);
    console.log(table);
  } finally {
    await store.stop();
  }
}

void main();
