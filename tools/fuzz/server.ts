import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Pool } from 'pg';
import { pgTypes } from '../../src/platform/database/pg-types';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { freePort } from '../../src/dev/embedded/server';
import { cloneDatabase } from '../../test/support/database';
import startTestServer from '../../test/support/global-setup';
import { leakIn } from './oracles';
import { Webhook } from './webhook';
import {
  toNdjsonText,
  OPERATOR_TOKEN,
  PEPPER,
  tenantRecords,
  type Tenant,
} from '../../test/support/world/world';

/** The service as it is deployed, in separate processes on a temporary database with the fuzzer's world in it. */
export interface Server {
  /** The URLs of the replicas. */
  bases: string[];
  sql: Pool;
  log: Log;
  webhook: Webhook;
  isRunning: () => boolean;
  stop: () => Promise<void>;
}

const REPLICAS = 2;

export async function importWorld(url: string, tenants: Tenant[], pepper: string): Promise<void> {
  const records = tenants.flatMap(tenantRecords);
  await importRecords(
    () => connectTo({ DATABASE_URL: url }),
    Readable.from([Buffer.from(toNdjsonText(records))]),
    {
      pepper: Buffer.from(pepper),
    },
  );
}

/** `build`: the folder of the built service. */
export async function startServer(tenants: Tenant[], build = '.'): Promise<Server> {
  await startTestServer();
  const database = await cloneDatabase();
  const url = database.direct_url ?? database.url;
  await importWorld(url, tenants, PEPPER);
  const children = new Set<ChildProcess>();
  const sql = new Pool({ connectionString: url, types: pgTypes, max: 8 });
  sql.on('error', () => undefined);
  const log = new Log();
  let webhook: Webhook | undefined;
  const stop = async () => {
    webhook?.close();
    await sql.end();
    await Promise.all([...children].map(stopReplica));
    await database.drop();
    await globalThis.testServer?.stop();
  };
  const start = async () => {
    const child = startReplica(build, database.url, await freePort());
    children.add(child);
    return log.follow(child);
  };
  try {
    webhook = await Webhook.add(sql, PEPPER);
    const bases = await Promise.all(Array.from({ length: REPLICAS }, start));
    return { bases, sql, log, webhook, stop, isRunning: () => [...children].every(isRunning) };
  } catch (error) {
    await stop();
    throw error;
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

function startReplica(build: string, url: string, metricsPort: number): ChildProcess {
  const child = spawn(process.execPath, [join(build, 'dist', 'src', 'main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      DATABASE_URL: url,
      API_KEY_PEPPER: PEPPER,
      OPERATOR_TOKEN,
      RATE_LIMIT: 'off',
      WEBHOOKS_ALLOW_PRIVATE: 'true',
      PORT: '0',
      // Replicas accept each other's tokens, so they need the same issuer.
      PUBLIC_URL: 'http://127.0.0.1',
      METRICS_PORT: String(metricsPort),
      DRAIN_SECONDS: '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // An interrupted run must not leave the process running.
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
}

async function stopReplica(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

// Audit lines record who did what; they are the only ones that identify a person, by number.
const ADDRESS = /@(mail\.fuzz|elsewhere)\.example/;

// Logged for requests with a 503, whose client may have disconnected.
const TURNED_AWAY =
  /connection timeout|timeout exceeded when trying to connect|Query read timeout|no connection was free in time/;

/** The output of the replicas. */
class Log {
  lines = 0;
  /** Lines that no log may contain. */
  readonly leaks: string[] = [];
  private readonly failures: string[] = [];

  /** Errors, except those of requests with these IDs. */
  errors(known: Set<string>): string[] {
    const parseRequestId = (line: string) => /"request_id":"([^"]+)"/.exec(line)?.[1] ?? '';
    return this.failures.filter((line) => !known.has(parseRequestId(line)) && !TURNED_AWAY.test(line));
  }

  /** The URL at which the replica listens, as soon as it does. */
  follow(child: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
      createInterface({ input: child.stdout! }).on('line', (line) => {
        this.read(line);
        const address = /"address":"([^"]+)".*"msg":"ready"/.exec(line)?.[1];
        if (address) resolve(address);
      });
      createInterface({ input: child.stderr! }).on('line', (line) => {
        this.failures.push(line);
        this.read(line);
      });
      child.once('exit', (code) => {
        if (child.killed) return;
        this.failures.push(`the service ended with code ${code}`);
        reject(new Error(`the service ended with code ${code}:\n${this.failures.join('\n')}`));
      });
    });
  }

  private read(line: string): void {
    this.lines++;
    const leak = leakIn(line) ?? (ADDRESS.test(line) ? 'an email address of a person' : undefined);
    if (leak) this.leaks.push(`${leak}: ${line.slice(0, 400)}`);
    if (/^\{"level":"(error|fatal)"/.test(line)) this.failures.push(line.slice(0, 1500));
  }
}
