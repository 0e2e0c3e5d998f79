import { DataSource } from 'typeorm';
import { Client } from 'pg';
import { buildIndex } from '../../migrations/steps/build-index';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { migrate } from '../../src/platform/database/migrate';
import { cloneDatabase } from '../support/database';
import { until } from '../support/time';

let url: string;
let drop: () => Promise<void>;
let source: DataSource;

beforeAll(async () => {
  ({ url, drop } = await cloneDatabase());
  source = await new DataSource(dataSourceOptions({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 })).initialize();
});
afterAll(async () => {
  await source.destroy();
  await drop();
});

afterEach(() => void jest.restoreAllMocks());
/** What TypeORM prints for migrations that a test makes fail. */
function failures() {
  const { calls } = jest.spyOn(console, 'log').mockImplementation().mock;
  return () => [...new Set(calls.map(([line]) => String(line)))];
}

const relationsAndFunctions = async () =>
  (
    await source.query<{ name: string }[]>(
      `SELECT relname AS name FROM pg_class
       WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S', 'p')
       UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`,
    )
  )
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('migrations'));

test('the entities match the schema', async () => {
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

// A deletion looks up referencing rows with one query per row and foreign key.
const KEYS_WITHOUT_INDEX = `
  SELECT f.conname AS name FROM pg_constraint f
  JOIN pg_attribute first ON first.attrelid = f.conrelid AND first.attnum = f.conkey[1]
  WHERE f.contype = 'f' AND f.conparentid = 0 AND NOT EXISTS (
    SELECT FROM pg_index i
    WHERE i.indrelid = f.conrelid AND i.indisvalid
      AND (i.indkey::int2[])[0:cardinality(f.conkey) - 1] @> f.conkey
      AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', first.attname)))
  ORDER BY 1`;

test('every foreign key has an index that starts with its columns and covers all rows', async () => {
  expect(await source.query(KEYS_WITHOUT_INDEX)).toEqual([]);
  await source.query(`
    CREATE TABLE of_users (a bigint CONSTRAINT scanned REFERENCES users, b bigint CONSTRAINT partly REFERENCES users,
      c bigint CONSTRAINT second REFERENCES users, d bigint CONSTRAINT found REFERENCES users);
    CREATE INDEX ON of_users (b) WHERE a IS NOT NULL;
    CREATE INDEX ON of_users (d, c) WHERE d IS NOT NULL`);
  const found = await source.query<{ name: string }[]>(KEYS_WITHOUT_INDEX);
  await source.query('DROP TABLE of_users');
  expect(found.map(({ name }) => name)).toEqual(['partly', 'scanned', 'second']);
});

test('migrates up, down and up', async () => {
  const before = await relationsAndFunctions();
  for (const _ of source.migrations) await source.undoLastMigration({ transaction: 'each' });
  expect(await relationsAndFunctions()).toEqual([]);
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await relationsAndFunctions()).toEqual(before);
  expect(await source.showMigrations()).toBe(false);
});

const MIGRATION_NAMES = 'SELECT name FROM migrations ORDER BY id';
const LAST_OF_0_1 = 'ForeignKeysByIndex20261124700000';

/** Restores the state that 0.1 left behind, with `names` in the migrations table. */
async function backTo01(...names: string[]) {
  const later = await source.query<object[]>(`SELECT FROM migrations WHERE right(name, 14) > '20261125'`);
  for (const _ of later) await source.undoLastMigration({ transaction: 'each' });
  await source.query('DELETE FROM migrations');
  for (const name of names)
    await source.query('INSERT INTO migrations (timestamp, name) VALUES ($1, $2)', [name.slice(-13), name]);
}

test('keeps the rows of a 0.1 store and records the baseline as applied', async () => {
  const old = ['Users20260101000100', LAST_OF_0_1];
  await backTo01(...old);
  await source.query(`INSERT INTO users (username) VALUES ('early')`);
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query(`SELECT username FROM users`)).toEqual([{ username: 'early' }]);
  expect(await source.showMigrations()).toBe(false);
  // Replicas of 0.1 require their own records.
  const names = (await source.query<{ name: string }[]>(MIGRATION_NAMES)).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(old));
  expect(names).toHaveLength(old.length + source.migrations.length);
  expect(await migrate({ DATABASE_URL: url }, () => undefined)).toEqual([]);
  await source.query(`DELETE FROM migrations WHERE name = ANY($1)`, [old]);
});

test('rejects an older store and leaves it unchanged', async () => {
  await backTo01('Users20260101000100');
  const before = await source.query<object[]>(MIGRATION_NAMES);
  await expect(migrate({ DATABASE_URL: url }, () => undefined)).rejects.toThrow(
    'The schema is older than that of the last 0.1 version.',
  );
  expect(await source.query(MIGRATION_NAMES)).toEqual(before);
  await backTo01(LAST_OF_0_1);
  await migrate({ DATABASE_URL: url }, () => undefined);
  await source.query(`DELETE FROM migrations WHERE name = $1`, [LAST_OF_0_1]);
});

test('rebuilds an index left invalid by an interrupted migration', async () => {
  await source.query('CREATE TABLE twice AS SELECT 1 AS id UNION ALL SELECT 1');
  await expect(source.query('CREATE UNIQUE INDEX CONCURRENTLY twice_idx ON twice (id)')).rejects.toThrow(
    'could not create unique index',
  );
  const runner = source.createQueryRunner();
  await buildIndex(runner, 'twice_idx', 'twice (id)');
  await runner.release();
  expect(
    await source.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = 'twice_idx'::regclass`),
  ).toEqual([{ indisvalid: true }]);
  await source.query('DROP TABLE twice');
});

test('runs one of two concurrent migrators, and the other finds nothing to do', async () => {
  for (const _ of source.migrations) await source.undoLastMigration({ transaction: 'each' });
  const done = await Promise.all([1, 2].map(() => migrate({ DATABASE_URL: url }, () => undefined)));
  expect(done.map((names) => names.length).toSorted((a, b) => a - b)).toEqual([0, source.migrations.length]);
});

test('control: without the lock, both run and one fails', async () => {
  for (const _ of source.migrations) await source.undoLastMigration({ transaction: 'each' });
  const options = dataSourceOptions({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 });
  const both = await Promise.all([1, 2].map(() => new DataSource(options).initialize()));
  const printed = failures();
  const done = await Promise.allSettled(both.map((one) => one.runMigrations()));
  await Promise.all(both.map((one) => one.destroy()));
  expect(done.map(({ status }) => status)).toContain('rejected');
  expect(printed()).toEqual([expect.stringMatching(/^Migration "\w+" failed, error: /)]);
  await migrate({ DATABASE_URL: url }, () => undefined);
});

/** Reverts the migration with this name prefix and all later ones; returns their names, oldest first. */
async function undoFrom(beginning: string): Promise<string[]> {
  const names = source.migrations
    .map(({ name }) => name!)
    .toSorted((a, b) => a.slice(-14).localeCompare(b.slice(-14)));
  const undone = names.slice(names.findIndex((name) => name.startsWith(beginning)));
  for (const _ of undone) await source.undoLastMigration({ transaction: 'each' });
  return undone;
}

const WAITING = `SELECT waitstart::text AS since FROM pg_locks
  WHERE NOT granted AND waitstart IS NOT NULL
    AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`;

test('waits for a table in short attempts that let readers through', async () => {
  const undone = await undoFrom('ApiKeys');
  const holder = new Client({ connectionString: url });
  await holder.connect();
  await holder.query('BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
  const lines: string[] = [];
  const printed = failures();
  const migrating = migrate({ DATABASE_URL: url }, (line) => lines.push(line));
  // The migration has given up at least once, and waits for the table again.
  const waits = new Set<string>();
  await until(async () => {
    const rows = (await source.query(WAITING)) as { since: string }[];
    for (const { since } of rows) waits.add(since);
    return waits.size > 1;
  });
  // A reader is served although the table is still locked.
  await source.query('SELECT count(*) FROM users');
  await holder.query('COMMIT');
  await holder.end();
  expect(await migrating).toEqual(undone);
  expect(lines).toEqual(['A table is in use by a long transaction: trying again']);
  expect(printed()).toEqual([
    expect.stringMatching(/^Migration "ApiKeys\d+" failed, error: canceling statement due to lock timeout$/),
  ]);
});

test('control: an unlimited wait blocks every reader', async () => {
  const [holder, migrator, reader] = await Promise.all(
    [1, 2, 3].map(async () => {
      const client = new Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  await holder!.query('BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
  const migrating = migrator!.query('ALTER TABLE users ADD COLUMN control text');
  const waiting = async (count: number) => ((await source.query(WAITING)) as unknown[]).length >= count;
  await until(() => waiting(1));
  const reading = reader!.query('SELECT count(*) FROM users');
  await until(() => waiting(2));
  await holder!.query('COMMIT');
  await Promise.all([migrating, reading]);
  await migrator!.query('ALTER TABLE users DROP COLUMN control');
  await Promise.all([holder!, migrator!, reader!].map((client) => client.end()));
});
