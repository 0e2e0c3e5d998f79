import { Client } from 'pg';
import { databaseUrl } from './app';
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
