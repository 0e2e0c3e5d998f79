import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { connectTo } from '../src/importing/import-records';
import { CONNECTIONS, inTurns, measure, settle } from './measure';
import { compareAnswers, workloadOf, type Workload } from './requests';
import { type EndpointResult, type Figure, machine, median, type Results, writeReports } from './report';
import { pgbenchRate } from './pgbench';
import { selectsOf } from './selects';
import { LoadGenerator, MeasuredServer, POOL_SIZE, type ServerName } from './servers';
import { openStore, type Store } from './store';
import { READS } from './workload';
import { measureWrites } from './writes';

const QUICK_SCALE = 0.05;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    scale: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    endpoints: { type: 'string', default: '' },
    servers: { type: 'string' },
    'keep-reports': { type: 'boolean', default: false },
  },
});
const quick = values.quick;
// Seconds until a process that was started just now runs as it will: V8 compiles while it runs.
const COMPILED = quick ? 1 : 5;
// The same for what one endpoint needs: of a page of a hundred games only some hundred are answered in a second.
const WARMED_UP = quick ? 0.2 : 4;
const LEAD_IN = quick ? 0.05 : 0.5;
// Ours gives back what starting took when nobody has asked for anything for a while; the short run does not wait for it.
const SETTLED = quick ? 0 : 13_000;
// The slowest server takes a second for an answer.
const SAMPLED = quick ? 10 : 60;
const scale = Number(values.scale ?? (quick ? QUICK_SCALE : 1));
const rounds = Number(values.rounds ?? (quick ? 2 : 5));
const seconds = Number(values.seconds ?? (quick ? 0.25 : 2));
const EVERYBODY = 'ours,floor,stock,express,fastify,pgbench';
const compared = (values.servers ?? (quick ? 'ours,floor,stock' : EVERYBODY)).split(',');
const names = compared.filter((name) => name !== 'pgbench') as ServerName[];
const withPgbench = compared.includes('pgbench');
const chosen = READS.filter(({ name }) =>
  values.endpoints === '' ? true : values.endpoints.split(',').some((part) => name === part.trim()),
);

const say = (line: string) => console.error(line);

async function measureEndpoint(
  servers: MeasuredServer[],
  load: LoadGenerator,
  workload: Workload,
  client: Client,
  askDatabase: (() => Promise<number | undefined>) | undefined,
): Promise<EndpointResult> {
  await compareAnswers(servers, workload, SAMPLED);
  const measured: EndpointResult['measured'] = {};
  const selects: number[] = [];
  for (const server of servers) {
    await measure(server, load, workload, { seconds: WARMED_UP, from: 0, leadIn: 0 });
    await settle(server, client);
    measured[server.name] = [];
  }
  await inTurns(
    servers,
    rounds,
    async (server, from) => {
      measured[server.name]!.push(await measure(server, load, workload, { seconds, from, leadIn: LEAD_IN }));
      await settle(server, client);
    },
    async () => {
      const rate = await askDatabase?.();
      if (rate !== undefined) selects.push(rate);
    },
  );
  return { endpoint: workload.endpoint, measured, selects };
}

async function measureAll(store: Store): Promise<Results> {
  const load = new LoadGenerator();
  const servers: MeasuredServer[] = [];
  const client = await connectTo({ DATABASE_URL: store.url });
  try {
    const starts: number[] = [];
    for (let i = 0; i < (quick ? 1 : 3); i++) {
      const ours = await MeasuredServer.start('ours', store);
      starts.push(ours.readyAfter);
      await ours.stop();
    }
    for (const name of names) servers.push(await MeasuredServer.start(name, store));
    const settled = sleep(SETTLED);
    const workloads: Workload[] = [];
    for (const endpoint of chosen) workloads.push(await workloadOf(endpoint, store));
    await settled;
    const idle: Results['idle'] = {};
    for (const server of servers) idle[server.name] = (await server.usage()).rss;
    const endpoints: EndpointResult[] = [];
    for (const server of servers)
      await measure(server, load, workloads[0]!, { seconds: COMPILED, from: 0, leadIn: 0 });
    const selects = withPgbench ? await selectsOf(store, workloads) : undefined;
    for (const workload of workloads) {
      const scripts = selects?.get(workload.endpoint);
      const askDatabase = scripts && (() => pgbenchRate(store, scripts, POOL_SIZE, seconds));
      const result = await measureEndpoint(servers, load, workload, client, askDatabase);
      endpoints.push(result);
      say(lineOf(result));
    }
    const ours = values.endpoints === '' ? servers.find(({ name }) => name === 'ours') : undefined;
    const writes = ours
      ? await measureWrites(store, ours, load, { connections: CONNECTIONS, rounds, seconds })
      : [];
    return {
      machine: machine(store),
      scale,
      rounds,
      seconds,
      connections: CONNECTIONS,
      starts,
      idle,
      endpoints,
      writes,
    };
  } finally {
    load.stop();
    await client.end();
    for (const server of servers) await server.stop();
  }
}

function lineOf({ endpoint, measured }: EndpointResult): string {
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
    const table = writeReports(results, !values['keep-reports']);
    console.log(table);
  } finally {
    await store.stop();
  }
}

void main();
