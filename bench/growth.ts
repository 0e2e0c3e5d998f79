/** Whether ours stays as fast where the store is ten times as large: the same server on both stores, in turns. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CONNECTIONS, measure } from './measure';
import { machine, type Measured, median, ratioOf, shown, table } from './report';
import { type Workload, workloadOf } from './requests';
import { LoadGenerator, MeasuredServer } from './servers';
import { openStore, type Store } from './store';
import { type Endpoint, READS } from './workload';

// At most, in seconds.
const WARM = 30;
const LEAD_IN = 0.5;

const { values } = parseArgs({
  options: {
    scales: { type: 'string', default: '1,10' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    endpoints: { type: 'string', default: '' },
    'keep-reports': { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const scales = values.scales.split(',').map(Number);
const say = (line: string) => console.error(line);

interface Site {
  store: Store;
  server: MeasuredServer;
}

/** Once through all requests, so that what a database in service has in memory is there. */
async function warm(server: MeasuredServer, load: LoadGenerator, workload: Workload): Promise<void> {
  const { rate } = await measure(server, load, workload, { seconds: 1, from: 0, leadIn: LEAD_IN });
  const seconds = Math.min(WARM, workload.count / rate);
  await measure(server, load, workload, { seconds, from: 0, leadIn: 0 });
}

async function measureOn(sites: Site[], load: LoadGenerator, endpoint: Endpoint): Promise<Measured[][]> {
  const measured = sites.map((): Measured[] => []);
  const workloads = await Promise.all(sites.map(({ store }) => workloadOf(endpoint, store)));
  for (const [i, { server }] of sites.entries()) await warm(server, load, workloads[i]!);
  for (let round = 0; round < rounds; round++) {
    const order = [...sites.keys()];
    // Whoever goes first meets another machine than whoever goes last: they take turns.
    if (round % 2) order.reverse();
    for (const i of order) {
      const stretch = { seconds, from: (round + 1) / (rounds + 1), leadIn: LEAD_IN };
      measured[i]!.push(await measure(sites[i]!.server, load, workloads[i]!, stretch));
    }
  }
  return measured;
}

function rowOf({ name }: Endpoint, [small, large]: Measured[][]): string[] {
  const rates = [small!, large!].map((list) => list.map(({ rate }) => rate));
  return [name, shown(ratioOf(rates[1]!, rates[0]!)), ...rates.map((list) => median(list).toFixed(0))];
}

async function main(): Promise<void> {
  const sites: Site[] = [];
  const load = new LoadGenerator();
  try {
    for (const scale of scales) {
      const store = await openStore(scale, say);
      sites.push({ store, server: await MeasuredServer.start('ours', store) });
    }
    const chosen = READS.filter(
      ({ name }) => values.endpoints === '' || values.endpoints.split(',').includes(name),
    );
    const rows: string[][] = [];
    for (const endpoint of chosen) {
      rows.push(rowOf(endpoint, await measureOn(sites, load, endpoint)));
      say(rows.at(-1)!.join('  '));
    }
    const [one, ten] = sites.map(({ store }) => machine(store));
    const { database, import: imported, ...same } = ten!;
    const text = [
      '# Results of `npm run bench:growth`',
      `${CONNECTIONS} connections, ${rounds} paired rounds of ${seconds} s. Requests a second on the store of scale ${scales[1]} divided by those on the one of scale ${scales[0]} in the same round: median (lowest–highest).`,
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
    if (!values['keep-reports']) writeFileSync(join(process.cwd(), 'bench', 'GROWTH.md'), text);
    console.log(text);
  } finally {
    load.stop();
    for (const { server, store } of sites) {
      await server.stop();
      await store.stop();
    }
  }
}

void main();
