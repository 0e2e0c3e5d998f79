import { Client } from 'pg';
import { Database } from '../../src/platform/database/database';
import { databaseUrl, theApp } from './app';
import { make } from './make';
import { sql } from './sql';
import { until } from './time';

const holders: Client[] = [];
afterEach(async () => void (await Promise.all(holders.splice(0).map((holder) => holder.end()))));

/** Holds the locks of the statements until released or until the test ends. */
export async function holdLocks(statements: string) {
  const holder = new Client({ connectionString: databaseUrl() });
  holders.push(holder);
  await holder.connect();
  await holder.query(`BEGIN; ${statements}`);
  return {
    query: (text: string) => holder.query(text),
    release: () => holder.query('ROLLBACK'),
    commit: () => holder.query('COMMIT'),
  };
}

/** The sessions that wait for a lock. */
export const blocked = () =>
  sql(`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);

/** Waits until this many transactions are blocked. */
export const untilBlocked = (count = 1) => until(async () => (await blocked()).length >= count);

/** Sends ten requests that wait for the locks, and returns the status of another user's write meanwhile. */
export async function writeWhileLocked(locks: string, request: () => Promise<unknown>): Promise<number> {
  const other = await make.user();
  const { release } = await holdLocks(locks);
  const requests = Array.from({ length: 10 }, request);
  // Those that don't wait for the lock wait for their turn.
  await until(() => theApp().get(Database).connections.waiting >= 2);
  const { status } = await other.post('/collections');
  await release();
  await Promise.allSettled(requests);
  return status;
}
