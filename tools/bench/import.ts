import { fork } from 'node:child_process';
import { createReadStream, createWriteStream, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { migrate } from '../../src/platform/database/migrate';
import { demoRecords } from '../../src/dev/demo/demo';
import { ndjsonOf } from '../../src/dev/demo/demo-file';
import type { DemoOptions } from '../../src/dev/demo/demo-options';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { postgresFor } from './store';

/** Of a million records; a tenth of each is the small file. */
const MILLION = {
  users: 50_000,
  games: 80_000,
  purchases: 350_000,
  download_keys: 175_000,
  collections: 2_999,
  collection_size: 50,
  large_collection: 50_000,
  builds: 340_000,
  api_keys: 1_998,
} satisfies Partial<DemoOptions>;

const TABLES = [
  'users',
  'user_emails',
  'games',
  'game_admins',
  'game_earnings',
  'sales_periods',
  'purchases',
  'purchase_games',
  'download_keys',
  'collections',
  'collection_admins',
  'collection_games',
  'builds',
  'api_keys',
  'oauth_applications',
];

interface Imported {
  seconds: number;
  records: number;
  megabytes: number;
  /** Of PostgreSQL's processor time, the part that the figures of days and months take; NaN elsewhere than on Linux. */
  periods: number;
}

const folder = join('.bench', 'import');
const chunks = { highWaterMark: 256 * 1024 };
const say = (line: string) => console.error(line);

/** The import in a process of its own, so that its memory is its own. */
function runImport(url: string, file: string): Promise<Imported> {
  return new Promise((resolve, reject) => {
    const child = fork(__filename, ['--url', url, '--file', file], { stdio: 'inherit' });
    child.once('message', (message) => resolve(message as Imported));
    child.once('exit', (code) => reject(new Error(`the import ended with ${code}`)));
  });
}

const TICKS_A_SECOND = 100;

/** The processor time of a process, in seconds. */
function processorTime(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return NaN;
  }
}

/** A connection that adds up what its statements cost the server, and those that name a table among them. */
async function measured(url: string, table: string, spent: { all: number; some: number }): Promise<Client> {
  const client = await connectTo({ DATABASE_URL: url });
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const query = client.query.bind(client) as (...words: unknown[]) => Promise<unknown>;
  client.query = ((...words: unknown[]) => {
    const before = processorTime(rows[0]!.pid);
    const answer = query(...words);
    // COPY answers with a stream, whose time is counted with the next statement.
    if (typeof words[0] !== 'string') return answer;
    return answer.then((result) => {
      spent.all = processorTime(rows[0]!.pid);
      if (String(words[0]).includes(table)) spent.some += spent.all - before;
      return result;
    });
  }) as unknown as Client['query'];
  return client;
}

async function importAsChild(url: string, file: string): Promise<void> {
  let records = 0;
  const spent = { all: 0, some: 0 };
  const start = performance.now();
  await importRecords(() => measured(url, 'sales_periods', spent), createReadStream(file, chunks), {
    pepper: Buffer.from('a pepper for the benchmark'),
    progress: (progress) => {
      if ('records' in progress) records = progress.records;
    },
  });
  const seconds = (performance.now() - start) / 1000;
  const megabytes = process.resourceUsage().maxRSS / 1024;
  const periods = spent.some / spent.all;
  process.send!({ seconds, records, megabytes, periods } satisfies Imported, () => process.disconnect());
}

/** The rows of all tables as files, and bare tables for them: no key, no index, no constraint. */
async function unload(url: string): Promise<void> {
  const client = await connectTo({ DATABASE_URL: url });
  for (const table of TABLES) {
    const out = client.query(copyTo(`COPY ${table} TO STDOUT`));
    await pipeline(out, createWriteStream(join(folder, `${table}.copy`)));
  }
  await client.end();
}

async function copyBare(url: string): Promise<number> {
  const client = await connectTo({ DATABASE_URL: url });
  for (const table of TABLES) await client.query(`CREATE TABLE bare_${table} AS TABLE ${table} WITH NO DATA`);
  const start = performance.now();
  for (const table of TABLES) {
    const into = client.query(copyFrom(`COPY bare_${table} FROM STDIN`));
    await pipeline(createReadStream(join(folder, `${table}.copy`), chunks), into);
  }
  const seconds = (performance.now() - start) / 1000;
  await client.end();
  return seconds;
}

async function withFreshDatabase<Result>(
  serverUrl: string,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const admin = await connectTo({ DATABASE_URL: serverUrl });
  const url = new URL(serverUrl);
  url.pathname = '/import_bench';
  try {
    await admin.query('DROP DATABASE IF EXISTS import_bench WITH (FORCE)');
    await admin.query('CREATE DATABASE import_bench');
    await migrate({ DATABASE_URL: url.href }, say);
    return await work(url.href);
  } finally {
    await admin.query('DROP DATABASE IF EXISTS import_bench WITH (FORCE)');
    await admin.end();
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function writeFile(file: string, scale: number): Promise<void> {
  const options = Object.fromEntries(
    Object.entries(MILLION).map(([name, count]) => [
      name,
      name === 'collection_size' ? count : Math.round(count * scale),
    ]),
  );
  await pipeline(Readable.from(ndjsonOf(demoRecords(options))), createWriteStream(file));
}

async function compare(rounds: number, scale: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'records.ndjson');
  const small = join(folder, 'tenth.ndjson');
  await writeFile(file, scale);
  await writeFile(small, scale / 10);
  const server = await openEmbeddedPostgres({
    dataDir: folder,
    mode: 'serve',
    log: say,
    settings: postgresFor(scale),
  });
  try {
    const ratios: number[] = [];
    const rates: number[] = [];
    let peak = 0;
    console.log(`${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}`);
    console.log(`file: ${(statSync(file).size / 1e6).toFixed(0)} MB`);
    console.log('round  records   import s  records/s  COPY s  import/COPY  peak RSS MB  periods %');
    for (let round = 1; round <= rounds; round++)
      await withFreshDatabase(server.url, async (url) => {
        const { seconds, records, megabytes, periods } = await runImport(url, file);
        await unload(url);
        const bare = await copyBare(url);
        ratios.push(seconds / bare);
        rates.push(records / seconds);
        peak = Math.max(peak, megabytes);
        const cells = [
          String(round).padEnd(5),
          String(records).padStart(8),
          seconds.toFixed(1).padStart(10),
          String(Math.round(records / seconds)).padStart(10),
          bare.toFixed(1).padStart(7),
          (seconds / bare).toFixed(2).padStart(12),
          megabytes.toFixed(0).padStart(12),
          (periods * 100).toFixed(1).padStart(10),
        ];
        console.log(cells.join(' '));
      });
    const tenth = await withFreshDatabase(server.url, (url) => runImport(url, small));
    console.log(
      `median: ${Math.round(median(rates))} records/s, ${median(ratios).toFixed(2)} times the time of bare COPY; ` +
        `peak RSS ${peak.toFixed(0)} MB, ${tenth.megabytes.toFixed(0)} MB for a file of a tenth`,
    );
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
    url: { type: 'string' },
    file: { type: 'string' },
  },
});
const work =
  values.url !== undefined && values.file !== undefined
    ? importAsChild(values.url, values.file)
    : compare(Number(values.rounds), Number(values.scale));
work.catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
