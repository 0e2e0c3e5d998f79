import { DataSource } from 'typeorm';
import { Client } from 'pg';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { migrate } from '../../src/platform/database/migrate';
import { cloneDatabase } from '../support/database';
import { moment } from '../support/time';

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
/** What TypeORM prints of migrations that fail, where a test makes them fail. */
function failures() {
  const { calls } = jest.spyOn(console, 'log').mockImplementation().mock;
  return () => [...new Set(calls.map(([line]) => String(line)))];
}

const tables = async () =>
  (
    await source.query<{ name: string }[]>(
      `SELECT relname AS name FROM pg_class
       WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S', 'p') ORDER BY 1`,
    )
  )
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('migrations'));

test('the entities are the schema', async () => {
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

// A deletion looks for what refers to a row, one query for each row and foreign key.
const KEYS_WITHOUT_INDEX = `
  SELECT f.conname AS name FROM pg_constraint f
  JOIN pg_attribute first ON first.attrelid = f.conrelid AND first.attnum = f.conkey[1]
  WHERE f.contype = 'f' AND f.conparentid = 0 AND NOT EXISTS (
    SELECT FROM pg_index i
    WHERE i.indrelid = f.conrelid AND i.indisvalid
      AND (i.indkey::int2[])[0:cardinality(f.conkey) - 1] @> f.conkey
      AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', first.attname)))
  ORDER BY 1`;

test('every foreign key has an index that begins with its columns and leaves out no row', async () => {
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

test('up, down, up', async () => {
  const before = await tables();
  for (const _ of source.migrations) await source.undoLastMigration({ transaction: 'each' });
  expect(await tables()).toEqual([]);
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await tables()).toEqual(before);
  expect(await source.showMigrations()).toBe(false);
});

const stampOf = (name: string) => Number(/\d+$/.exec(name)![0]);

/** Undoes the migration whose name begins so, and all that came after it; their names, oldest first. */
async function undoFrom(beginning: string): Promise<string[]> {
  const names = source.migrations.map(({ name }) => name!).toSorted((a, b) => stampOf(a) - stampOf(b));
  const undone = names.slice(names.findIndex((name) => name.startsWith(beginning)));
  for (const _ of undone) await source.undoLastMigration({ transaction: 'each' });
  return undone;
}

test('an index of purchases goes also where an operator has made them partitions', async () => {
  const [name] = await undoFrom('PurchasesWithoutEmailIndex');
  await source.query(
    'ALTER TABLE purchases RENAME TO whole; ALTER INDEX purchases_email_idx RENAME TO whole_idx',
  );
  await source.query(`
    CREATE TABLE purchases (email text) PARTITION BY LIST (email);
    CREATE INDEX purchases_email_idx ON purchases (lower(email))`);
  const runner = source.createQueryRunner();
  await source.migrations.find((one) => one.name === name)!.up(runner);
  await runner.release();
  expect(await source.query(`SELECT to_regclass('purchases_email_idx') AS found`)).toEqual([{ found: null }]);
  await source.query('DROP TABLE purchases; ALTER TABLE whole RENAME TO purchases; DROP INDEX whole_idx');
  await migrate({ DATABASE_URL: url }, () => undefined);
});

test('an index that an interrupted try left half made is made anew', async () => {
  await undoFrom('HiddenGamesWithRoom');
  await source.query('CREATE TABLE twice AS SELECT 1 AS id UNION ALL SELECT 1');
  await expect(
    source.query('CREATE UNIQUE INDEX CONCURRENTLY games_hidden_idx ON twice (id)'),
  ).rejects.toThrow('could not create unique index');
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(
    await source.query(
      `SELECT indrelid::regclass::text AS of, indisvalid FROM pg_index WHERE indexrelid = 'games_hidden_idx'::regclass`,
    ),
  ).toEqual([{ of: 'games', indisvalid: true }]);
  await source.query('DROP TABLE twice');
});

test('purchases that were there get their buyers, also where a try was given up', async () => {
  await undoFrom('PurchaseGameBuyers');
  await source.query(`INSERT INTO users (username) VALUES ('maker')`);
  await source.query(`INSERT INTO games (user_id, slug, title) VALUES (1, 'one', 'One'), (1, 'two', 'Two')`);
  await source.query(`
    INSERT INTO purchases (email, user_id, source, currency, amount)
    SELECT 'Buyer' || n % 100 || '@example.com', CASE WHEN n % 2 = 0 THEN 1 END, 'card', 'USD', 1 FROM generate_series(1, 12000) n`);
  await source.query(`INSERT INTO purchase_games SELECT p.id, g.id FROM purchases p, games g`);
  await migrate({ DATABASE_URL: url }, () => undefined);
  const wrong = `
    SELECT pg.* FROM purchase_games pg JOIN purchases p ON p.id = pg.purchase_id
    WHERE (pg.user_id, pg.email) IS DISTINCT FROM (p.user_id, lower(p.email))`;
  expect(await source.query(wrong)).toEqual([]);

  await source.query(
    `DELETE FROM migrations WHERE name ~ 'BuyersOfOldPurchases|PurchaseGameIndexes|PurchasesByIndexAlone'`,
  );
  // It fails, and leaves an index that is not valid.
  const unfinished = `CREATE UNIQUE INDEX CONCURRENTLY purchase_games_game_id_email_idx ON purchase_games (game_id, email)`;
  await expect(source.query(unfinished)).rejects.toThrow('could not create unique index');
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query('SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid')).toEqual([]);
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

test('keys that were there get their accounts, also after an interrupted try', async () => {
  await undoFrom('DownloadKeysByPurchase');
  await source.query(`
    INSERT INTO users (username) VALUES ('seller'), ('buyer');
    INSERT INTO games (user_id, slug, title) SELECT id, 'sold', 'Sold' FROM users WHERE username = 'seller';
    INSERT INTO purchases (email, user_id, source, currency, amount)
    SELECT 'Key' || n || '@example.com', CASE WHEN n % 2 = 0 THEN u.id END, 'card', 'USD', 1
    FROM generate_series(1, 8) n, users u WHERE u.username = 'buyer';
    INSERT INTO download_keys (key, game_id, purchase_id, user_id)
    SELECT 'key-' || n, g.id, p.id, CASE WHEN n % 3 = 0 THEN g.user_id END
    FROM generate_series(1, 12000) n
    JOIN games g ON g.slug = 'sold'
    LEFT JOIN purchases p ON p.email = 'Key' || n % 10 || '@example.com'`);
  await migrate({ DATABASE_URL: url }, () => undefined);
  const wrong = `
    SELECT k.id FROM download_keys k LEFT JOIN purchases p ON p.id = k.purchase_id
    WHERE (k.account_id, k.purchase_email) IS DISTINCT FROM (coalesce(k.user_id, p.user_id), lower(p.email))`;
  expect(await source.query(wrong)).toEqual([]);

  await source.query(`DELETE FROM migrations WHERE name ~ 'AccountsOfOldDownloadKeys'`);
  await source.query('UPDATE download_keys SET account_id = NULL, purchase_email = NULL WHERE id % 2 = 0');
  expect(await source.query(wrong)).not.toEqual([]);
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query(wrong)).toEqual([]);
});

test('purchases that were there are sales, also after an interrupted try', async () => {
  await undoFrom('SoldAt');
  await source.query(`
    INSERT INTO users (username) VALUES ('earlier');
    INSERT INTO games (user_id, slug, title) SELECT id, 'sold-before', 'Sold' FROM users WHERE username = 'earlier';
    WITH made AS (
      INSERT INTO purchases (email, source, currency, amount, created_at, status)
      SELECT 'Sold' || n || '@example.com', 'card', 'USD', 1, timestamptz '2024-01-01' + n * interval '1 hour',
             (ARRAY['complete', 'refunded', 'pending', 'failed'])[n % 4 + 1]
      FROM generate_series(1, 12000) n RETURNING id)
    INSERT INTO purchase_games (purchase_id, game_id) SELECT made.id, g.id FROM made, games g WHERE g.slug = 'sold-before'`);
  await migrate({ DATABASE_URL: url }, () => undefined);
  const wrong = `
    SELECT p.id FROM purchase_games pg JOIN purchases p ON p.id = pg.purchase_id
    WHERE pg.sold_at IS DISTINCT FROM CASE WHEN p.status IN ('complete', 'refunded') THEN p.created_at END`;
  expect(await source.query(wrong)).toEqual([]);

  await source.query(`DELETE FROM migrations WHERE name ~ 'SoldAtOfOldPurchases'`);
  await source.query('UPDATE purchase_games SET sold_at = NULL WHERE purchase_id % 3 = 0');
  expect(await source.query(wrong)).not.toEqual([]);
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query(wrong)).toEqual([]);
});

test('games that were there get the names of their owners, also where a try was given up', async () => {
  await undoFrom('GameOwnerNames');
  await source.query(`
    INSERT INTO users (username) SELECT 'owner-' || n FROM generate_series(1, 300) n;
    INSERT INTO games (user_id, slug, title)
    SELECT u.id, 'old-' || n, 'Old' FROM users u, generate_series(1, 40) n WHERE u.username LIKE 'owner-%'`);
  await migrate({ DATABASE_URL: url }, () => undefined);
  const wrong = `
    SELECT g.id FROM games g JOIN users u ON u.id = g.user_id WHERE g.owner_name IS DISTINCT FROM u.username`;
  expect(await source.query(wrong)).toEqual([]);

  await source.query(`DELETE FROM migrations WHERE name ~ 'OwnerNamesOfOldGames'`);
  await source.query('ALTER TABLE games ALTER owner_name DROP NOT NULL');
  await source.query('UPDATE games SET owner_name = NULL WHERE id % 2 = 0');
  await source.query(
    'ALTER TABLE games ADD CONSTRAINT games_owner_name_given CHECK (owner_name IS NOT NULL) NOT VALID',
  );
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query(wrong)).toEqual([]);
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

test('of games that were there it is known at once how often a sum of the index is found', async () => {
  await undoFrom('GamesByHash');
  await migrate({ DATABASE_URL: url }, () => undefined);
  expect(await source.query(`SELECT n_distinct FROM pg_stats WHERE tablename = 'games_hash_idx'`)).toEqual([
    { n_distinct: -1 },
  ]);
});

test('two migrators at once: one runs, the other finds it done', async () => {
  for (const _ of source.migrations) await source.undoLastMigration({ transaction: 'each' });
  const done = await Promise.all([1, 2].map(() => migrate({ DATABASE_URL: url }, () => undefined)));
  expect(done.map((names) => names.length).toSorted((a, b) => a - b)).toEqual([0, source.migrations.length]);
});

test('control: TypeORM alone lets both run, and one of them fails', async () => {
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

test('a table in use is waited for in short tries, and readers pass meanwhile', async () => {
  const undone = await undoFrom('ApiKeys');
  const holder = new Client({ connectionString: url });
  await holder.connect();
  await holder.query('BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
  const lines: string[] = [];
  const printed = failures();
  const migrating = migrate({ DATABASE_URL: url }, (line) => lines.push(line));
  await moment(600);
  const started = performance.now();
  await source.query('SELECT count(*) FROM users');
  expect(performance.now() - started).toBeLessThan(450);
  await holder.query('COMMIT');
  await holder.end();
  expect(await migrating).toEqual(undone);
  expect(lines).toEqual(['A table is in use by a long transaction: trying again']);
  expect(printed()).toEqual([
    expect.stringMatching(/^Migration "ApiKeys\d+" failed, error: canceling statement due to lock timeout$/),
  ]);
});

test('control: one that waits as long as it takes holds up every reader', async () => {
  const [holder, migrator, reader] = await Promise.all(
    [1, 2, 3].map(async () => {
      const client = new Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  await holder!.query('BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
  const migrating = migrator!.query('ALTER TABLE users ADD COLUMN control text');
  await moment(100);
  const reading = reader!.query('SELECT count(*) FROM users');
  expect(await Promise.race([reading, moment(600).then(() => 'waits')])).toBe('waits');
  await holder!.query('COMMIT');
  await Promise.all([migrating, reading]);
  await migrator!.query('ALTER TABLE users DROP COLUMN control');
  await Promise.all([holder!, migrator!, reader!].map((client) => client.end()));
});
