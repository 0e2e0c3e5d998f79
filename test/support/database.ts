import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';

const OBJECT_IN_USE = '55006';
const INSUFFICIENT_PRIVILEGE = '42501';

export interface TestDatabase {
  url: string;
  /** URL of the database that bypasses the pooler, if there is one. */
  direct_url?: string;
  drop(): Promise<void>;
}

/**
 * A fresh copy of the migrated template. Copying files takes half the time of the default, which writes them to the
 * WAL.
 */
export async function cloneDatabase(): Promise<TestDatabase> {
  const name = `gamewharf_test_${randomBytes(6).toString('hex')}`;
  await insist(
    `CREATE DATABASE ${name} TEMPLATE ${process.env.TEST_TEMPLATE} STRATEGY FILE_COPY`,
    OBJECT_IN_USE,
  );
  return {
    url: withDatabase(process.env.TEST_POOLER_URL ?? serverUrl(), name),
    direct_url: withDatabase(serverUrl(), name),
    drop: () => dropDatabase(name),
  };
}

export const dropDatabase = (name: string): Promise<void> =>
  insist(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, INSUFFICIENT_PRIVILEGE);

/**
 * Retries while autovacuum is connected to the database: it can't be copied then, and only a superuser may end that
 * connection.
 */
const insist = (sql: string, code: string): Promise<void> =>
  administer(async (client) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return void (await client.query(sql));
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.code !== code || attempt === 50) throw error;
        await sleep(100);
      }
    }
  });

export function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

export async function administer<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: serverUrl() });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function serverUrl(): string {
  const url = process.env.TEST_SERVER_URL;
  if (!url) throw new Error('jest has not run test/support/global-setup.ts');
  return url;
}
