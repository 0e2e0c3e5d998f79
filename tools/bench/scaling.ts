/** What a read costs each process on its way, in the arrangements of docs/explanation/scaling.md. Linux only: it reads /proc. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { PURCHASES_BY_EMAIL } from '../../src/purchases/purchases.service';
import { startPooler } from '../../test/support/pgbouncer';
import { databaseWithStandby } from '../../test/support/standby';
import { workloadOf } from './requests';
import { machine, median } from './report';
import { LoadGenerator, MeasuredServer } from './servers';
import { fill, sizeOf, type Store } from './store';
import { READS } from './workload';

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '0.05' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1.5' },
  },
});
const [scale, rounds, seconds] = [values.scale, values.rounds, values.seconds].map(Number) as [
  number,
  number,
  number,
];
const CONNECTIONS = 32;
const ENDPOINTS = [
  'profile',
  'download_keys by key',
  'purchases',
  'profile/games',
  'collection-games at 100',
];
const say = (line: string) => console.error(line);

interface Arrangement {
  name: string;
  replicas: MeasuredServer[];
}

/** Microseconds of processor time, by who spent them. */
type Spent = Record<'service' | 'pooler' | 'primary' | 'standby', number>;

const TICK = 10_000;

/** Of a process, of its children, and of those that have ended. */
function cpuOf(root: number): number {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const [own, ended] = [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])];
      if (Number(name) === root) ticks += own + ended;
      else if (Number(fields[1]) === root) ticks += own;
    } catch {
      // It ended meanwhile, and is counted with its parent.
    }
  }
  return ticks * TICK;
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-scaling-'));
  const database = await databaseWithStandby();
  const pooler = await startPooler(database.url);
  const loads = [new LoadGenerator(), new LoadGenerator()];
  const arrangements: Arrangement[] = [];
  try {
    const pepper = 'scaling'.repeat(8);
    const store = {
      folder,
      url: database.url,
      pepper,
      size: sizeOf(scale),
      stop: () => Promise.resolve(),
    } as Store;
    await fill(store.url, folder, store.size, pepper, say);
    const client = new Client({ connectionString: store.url });
    // Where something fails, that is what is told, and not that the server ends then.
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query<{ version: string; bytes: number }>(
      `SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes`,
    );
    Object.assign(store, rows[0]);
    console.log(JSON.stringify(machine(store)));

    const start = async (name: string, ...environments: Record<string, string>[]) => {
      const replicas = [];
      for (const environment of environments)
        replicas.push(await MeasuredServer.start('ours', store, environment));
      arrangements.push({ name, replicas });
    };
    await start('one replica', {});
    await start('two replicas', {}, {});
    await start('one replica, PgBouncer', {
      DATABASE_URL: pooler.through(store.url),
      DATABASE_PREPARED_STATEMENTS: 'false',
    });
    await start('one replica, standby', { DATABASE_READ_URL: database.standby_url });
    const spent = async (): Promise<Spent> => ({
      service: (await Promise.all(arrangements.flatMap(({ replicas }) => replicas.map((one) => one.usage()))))
        .map(({ cpu }) => cpu)
        .reduce((a, b) => a + b),
      pooler: cpuOf(pooler.pid),
      primary: cpuOf(database.pids.primary),
      standby: cpuOf(database.pids.standby),
    });

    console.log(
      `\n| read | arrangement | service | pooler | primary | standby |\n| --- | --- | --- | --- | --- | --- |`,
    );
    for (const name of ENDPOINTS) {
      const { file } = await workloadOf(
        READS.find((one) => one.name === name)!,
        store,
      );
      const measured = new Map<string, Spent[]>(arrangements.map((one) => [one.name, []]));
      for (let round = 0; round <= rounds; round++)
        for (const { name, replicas } of round % 2 ? arrangements.toReversed() : arrangements) {
          const before = await spent();
          const outcomes = await Promise.all(
            replicas.map(({ port }, i) =>
              loads[i]!.drive({
                port,
                file,
                connections: CONNECTIONS / replicas.length,
                seconds,
                from: (round + i / 2) / (rounds + 1),
              }),
            ),
          );
          const after = await spent();
          const answers = outcomes.reduce((sum, one) => sum + one.answers, 0);
          for (const { failures } of outcomes)
            if (Object.keys(failures).length > 0) throw new Error(`${name}: ${JSON.stringify(failures)}`);
          // The first round warms up.
          if (round === 0) continue;
          const each = Object.entries(after).map(([who, cpu]) => [
            who,
            (cpu - before[who as keyof Spent]) / answers,
          ]);
          measured.get(name)!.push(Object.fromEntries(each) as Spent);
        }
      for (const [arrangement, list] of measured) {
        const of = (who: keyof Spent) => median(list.map((one) => one[who])).toFixed(0);
        console.log(
          `| ${name} | ${arrangement} | ${of('service')} | ${of('pooler')} | ${of('primary')} | ${of('standby')} |`,
        );
      }
    }
    await partitions(client, database.pids.primary);
    await client.end();
  } finally {
    for (const load of loads) load.stop();
    for (const { replicas } of arrangements) for (const one of replicas) await one.stop();
    await pooler.stop();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Purchases of a game by e-mail, which meet ids from every partition, and the newest, which is in the first one that is read. */
async function partitions(client: Client, primary: number): Promise<void> {
  const LOOKUPS = 4000;
  const [{ last }] = (await client.query<{ last: number }>('SELECT max(id)::int AS last FROM purchases'))
    .rows as [{ last: number }];
  const asks = (
    await client.query<{ game_id: number; owner: number; email: string }>(
      `SELECT pg.game_id, g.user_id AS owner, pg.email FROM purchase_games pg JOIN games g ON g.id = pg.game_id
       ORDER BY md5(pg.email) LIMIT ${LOOKUPS}`,
    )
  ).rows.map(({ game_id, owner, email }) => [game_id, owner, email]);
  await client.query('CREATE SCHEMA parted');
  await client.query('SET search_path = parted, public');
  console.log('\n| partitions | purchases by e-mail | the newest of all |\n| --- | --- | --- |');
  for (const count of [1, 2, 8, 32]) {
    await client.query('DROP TABLE IF EXISTS parted.purchases');
    await client.query('CREATE TABLE parted.purchases (LIKE public.purchases) PARTITION BY RANGE (id)');
    const bound = (i: number) =>
      i === 0 ? 'MINVALUE' : i === count ? 'MAXVALUE' : Math.ceil((last / count) * i);
    for (let i = 0; i < count; i++)
      await client.query(
        `CREATE TABLE purchases_${i} PARTITION OF purchases FOR VALUES FROM (${bound(i)}) TO (${bound(i + 1)})`,
      );
    await client.query('ALTER TABLE purchases ADD PRIMARY KEY (id)');
    await client.query('INSERT INTO purchases SELECT * FROM public.purchases');
    await client.query('ANALYZE purchases');
    const cost = async (name: string, text: string, value: (i: number) => unknown[]) => {
      for (let i = 0; i < 50; i++) await client.query({ name: `${name} ${count}`, text, values: value(i) });
      const before = cpuOf(primary);
      for (let i = 0; i < LOOKUPS; i++)
        await client.query({ name: `${name} ${count}`, text, values: value(i) });
      return ((cpuOf(primary) - before) / LOOKUPS).toFixed(0);
    };
    const byEmail = await cost('email', PURCHASES_BY_EMAIL.text, (i) => asks[i % asks.length]!);
    const newest = await cost(
      'newest',
      'SELECT id FROM purchases WHERE id > $1 ORDER BY id DESC LIMIT 1',
      () => [0],
    );
    console.log(`| ${count} | ${byEmail} | ${newest} |`);
  }
  await client.query('DROP SCHEMA parted CASCADE');
}

void main();
