import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';

const OBJECT_IN_USE = '55006';

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/** A fresh copy of the migrated template. Copying files took half the time of writing them to the log, the default. */
export async function cloneDatabase(): Promise<TestDatabase> {
  const name = `gamewharf_test_${randomBytes(6).toString('hex')}`;
  await administer(async (client) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await client.query(
          `CREATE DATABASE ${name} TEMPLATE ${process.env.TEST_TEMPLATE} STRATEGY FILE_COPY`,
        );
      } catch (error) {
        // Something else, such as autovacuum, is looking at the template.
        if (!(error instanceof DatabaseError) || error.code !== OBJECT_IN_USE || attempt === 50) throw error;
        await sleep(100);
      }
    }
  });
  return {
    url: withDatabase(serverUrl(), name),
    drop: async () => {
      await administer((client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

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
