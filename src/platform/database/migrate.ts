import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { DataSource } from 'typeorm';
import type { Settings } from '../config/settings';
import { OperatorError } from '../errors/operator-error';
import { adoptBaseline } from './baseline';
import { dataSourceOptions } from './data-source';
import { temporaryProblem, requireSupportedServer } from './reachable';
import { connectClient } from './with-client';

// The advisory lock of migrations.
const MIGRATION_LOCK = 7_104_201_886;
const LOCK_NOT_AVAILABLE = '55P03';
const ATTEMPTS = 150;

/**
 * Runs pending migrations, each in a transaction. A lock is requested for 200 ms at a time, so that readers and writers
 * never queue behind it. A second migrator waits for the first.
 */
export async function migrate(
  settings: Pick<Settings, 'DATABASE_URL'>,
  say: (line: string) => void,
): Promise<string[]> {
  const lock = await connectClient({ connectionString: settings.DATABASE_URL });
  const source = newMigrator(settings);
  try {
    await requireSupportedServer(lock);
    await waitFor(lock);
    await source.initialize();
    await source.query(`SET lock_timeout = '200ms'`);
    await adoptBaseline(source);
    for (let attempt = 1; ; attempt++) {
      try {
        const done = await source.runMigrations();
        return done.map(({ name }) => name);
      } catch (error) {
        const { code } = error as { code?: string };
        if (code !== LOCK_NOT_AVAILABLE || attempt === ATTEMPTS) throw error;
        if (attempt % 10 === 1) say('A table is in use by a long transaction: trying again');
        await sleep(200);
      }
    }
  } catch (error) {
    throw temporaryProblem(error) ?? error;
  } finally {
    if (source.isInitialized) await source.destroy();
    await lock.end();
  }
}

/** A data source with one connection, without the timeouts of connections that serve requests. */
export const newMigrator = (settings: Pick<Settings, 'DATABASE_URL'>) =>
  new DataSource(
    dataSourceOptions({ ...settings, DATABASE_POOL_SIZE: 1 }, { connectionTimeoutMillis: 5000 }),
  );

/** Polls, because a waiting statement keeps a snapshot, for which CREATE INDEX CONCURRENTLY would wait. */
async function waitFor(lock: Client): Promise<void> {
  const taken = async () =>
    (await lock.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [MIGRATION_LOCK]))
      .rows[0]!.taken;
  while (!(await taken())) await sleep(200);
}

/** Rejects a database without the migrations that this version needs. */
export async function requireMigrated(source: DataSource): Promise<void> {
  if (await source.showMigrations())
    throw new OperatorError('The database schema is older than this version: run `gamewharf migrate` first.');
}
