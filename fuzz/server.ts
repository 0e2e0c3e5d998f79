import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Pool } from 'pg';
import { pgTypes } from '../src/database/pg-types';
import { connectTo, importRecords } from '../src/importing/import-records';
import { cloneDatabase } from '../test/support/database';
import startTestServer from '../test/support/global-setup';
import { leakIn } from './oracles';
import { ndjsonOf, OPERATOR_TOKEN, PEPPER, recordsOf, type Tenant } from './world';

/** The service as it is deployed, in a process of its own, on a database with the fuzzer's world in it. */
export interface Server {
  base: string;
  sql: Pool;
  /** Lines of its log that no log may hold. */
  leaks: string[];
  /** Errors that it logged, those of requests with these ids left out. */
  errors: (known: Set<string>) => string[];
  lines: () => number;
  isRunning: () => boolean;
  stop: () => Promise<void>;
}

export async function importWorld(url: string, tenants: Tenant[], pepper: string): Promise<void> {
  const records = tenants.flatMap(recordsOf);
  await importRecords(
    () => connectTo({ DATABASE_URL: url }),
    Readable.from([Buffer.from(ndjsonOf(records))]),
    {
      pepper: Buffer.from(pepper),
    },
  );
}

export async function startServer(tenants: Tenant[]): Promise<Server> {
  await startTestServer();
  const database = await cloneDatabase();
  const url = database.direct_url ?? database.url;
  await importWorld(url, tenants, PEPPER);
  const child = spawn(process.execPath, [join('dist', 'src', 'main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      DATABASE_URL: database.url,
      API_KEY_PEPPER: PEPPER,
      OPERATOR_TOKEN,
      RATE_LIMIT: 'off',
      PORT: '0',
      METRICS_PORT: 'off',
      DRAIN_SECONDS: '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // A run that is interrupted leaves nothing behind.
  process.once('exit', () => child.kill('SIGKILL'));
  const sql = new Pool({ connectionString: url, types: pgTypes, max: 8 });
  sql.on('error', () => undefined);
  const log = readLog(child);
  const stop = async () => {
    await sql.end();
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await database.drop();
    await globalThis.testServer?.stop();
  };
  try {
    return { base: await log.ready, sql, stop, isRunning: () => child.exitCode === null, ...log };
  } catch (error) {
    await stop();
    throw error;
  }
}

// Audit lines say who did what; they are the only ones that name a person, by number.
const ADDRESS = /@(mail\.fuzz|elsewhere)\.example/;

// What is answered 503, to somebody who may have hung up.
const TURNED_AWAY = /connection timeout|timeout exceeded when trying to connect|Query read timeout/;

function readLog(child: ChildProcess) {
  const leaks: string[] = [];
  const errors: string[] = [];
  let count = 0;
  const ready = new Promise<string>((resolve, reject) => {
    const read = (line: string) => {
      count++;
      const leak = leakIn(line) ?? (ADDRESS.test(line) ? 'an address of a person' : undefined);
      if (leak) leaks.push(`${leak}: ${line.slice(0, 400)}`);
      if (/^\{"level":"(error|fatal)"/.test(line)) errors.push(line.slice(0, 1500));
      const address = /"address":"([^"]+)".*"msg":"ready"/.exec(line)?.[1];
      if (address) resolve(address);
    };
    createInterface({ input: child.stdout! }).on('line', read);
    createInterface({ input: child.stderr! }).on('line', (line) => {
      errors.push(line);
      read(line);
    });
    child.once('exit', (code) => {
      errors.push(`the service ended with code ${code}`);
      reject(new Error(`the service ended with code ${code}:\n${errors.join('\n')}`));
    });
  });
  const idOf = (line: string) => /"request_id":"([^"]+)"/.exec(line)?.[1] ?? '';
  return {
    leaks,
    errors: (known: Set<string>) =>
      errors.filter((line) => !known.has(idOf(line)) && !TURNED_AWAY.test(line)),
    ready,
    lines: () => count,
  };
}
