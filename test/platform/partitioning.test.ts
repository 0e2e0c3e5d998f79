import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { DataSource, type QueryRunner } from 'typeorm';
import { buildIndex } from '../../migrations/steps/build-index';
import { dropIndex } from '../../migrations/steps/drop-index';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { cloneDatabase } from '../support/database';
import { until } from '../support/time';

// Runs deploy/postgresql step by step as docs/explanation/scaling.md says, while another connection keeps reading and
// writing.
let database: Awaited<ReturnType<typeof cloneDatabase>>;
let operator: Client;
let service: Client;

beforeEach(async () => {
  database = await cloneDatabase();
  operator = new Client({ connectionString: database.url });
  service = new Client({ connectionString: database.url });
  await operator.connect();
  await service.connect();
  await service.query(`INSERT INTO users (username) VALUES ('maker'), ('buyer')`);
  await service.query(`INSERT INTO games (user_id, slug, title) VALUES (1, 'one', 'One'), (1, 'two', 'Two')`);
});

afterEach(async () => {
  await operator.end();
  await service.end();
  await database.drop();
});

const steps = (file: string) =>
  readFileSync(path.join(__dirname, '..', '..', 'deploy', 'postgresql', file), 'utf8')
    .split(/^-- Step \d+:.*$/m)
    .slice(1);

const queryRows = async (query: string) => (await operator.query<Record<string, unknown>>(query)).rows;

/** Everything in which a schema could differ: columns, constraints, indexes and triggers by name and definition. */
const shape = (table: string) =>
  queryRows(`
    SELECT 'column' AS what, column_name AS name, concat_ws(' ', data_type, is_nullable, column_default, is_identity) AS definition
    FROM information_schema.columns WHERE table_name = '${table}'
    UNION ALL
    SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '${table}'::regclass AND conparentid = 0
    UNION ALL
    SELECT 'index', indexname, replace(indexdef, ' ON ONLY ', ' ON ') FROM pg_indexes WHERE tablename = '${table}'
    UNION ALL
    SELECT 'trigger', tgname, concat_ws(' ', tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger WHERE tgrelid = '${table}'::regclass AND NOT tgisinternal
    ORDER BY 1, 2`);

const reads = { name: 'newest', text: `SELECT max(id)::int AS newest FROM builds WHERE game_id = 1` };

test('partitions builds with the same columns, constraints, indexes and rows, and continues IDs', async () => {
  const addBuild = `INSERT INTO builds (game_id, channel_name, user_version) VALUES (1, 'win', '1') RETURNING id::int`;
  const before = await shape('builds');
  const around = async () => [
    await shape('build_files'),
    await shape('build_jobs'),
    await shape('build_events'),
  ];
  const neighbours = await around();
  const added = async () => ((await service.query<{ id: number }>(addBuild)).rows[0] as { id: number }).id;
  let last = await added();
  expect((await service.query(reads)).rows).toEqual([{ newest: last }]);
  for (const step of steps('partition-builds.sql')) {
    await operator.query(step);
    const id = await added();
    expect(id).toBeGreaterThan(last);
    last = id;
    expect((await service.query(reads)).rows).toEqual([{ newest: last }]);
  }
  expect(await shape('builds')).toEqual(before);
  expect(await around()).toEqual(neighbours);
  expect(await queryRows(`SELECT relkind FROM pg_class WHERE relname = 'builds'`)).toEqual([
    { relkind: 'p' },
  ]);
  expect(await queryRows('SELECT count(*)::int AS rows FROM builds_0')).toEqual([{ rows: 7 }]);
  expect(await queryRows('SELECT max(version) AS version FROM builds')).toEqual([{ version: 7 }]);
});

test('finds the newest build of a channel in the newest partition first, using only the index', async () => {
  for (const step of steps('partition-builds.sql')) await operator.query(step);
  await operator.query('SET enable_seqscan = off');
  const plan = await queryRows(`
    EXPLAIN (COSTS OFF) SELECT user_version FROM builds
    WHERE game_id = 1 AND channel_name = 'win' AND state = 'completed' AND NOT hidden ORDER BY id DESC LIMIT 1`);
  const scans = plan.map((row) => String(row['QUERY PLAN'])).filter((line) => line.includes('Scan'));
  expect(scans).toEqual([expect.stringContaining('on builds_1'), expect.stringContaining('on builds_0')]);
  for (const scan of scans) expect(scan).toContain('Index Only Scan');
});

test('partitions purchases with the same shares, foreign keys, columns and indexes, and continues IDs', async () => {
  const before = await shape('purchases');
  const around = async () => [
    await shape('purchase_games'),
    await shape('download_keys'),
    await shape('purchase_references'),
  ];
  const neighbours = await around();
  const view = await queryRows(`SELECT pg_get_viewdef('purchase_shares')`);
  let last = 0;
  const buy = async () => {
    const { rows } = await service.query<{ id: number }>(
      `INSERT INTO purchases (email, source, currency, amount) VALUES ('buyer@example.com', 'web', 'USD', 101) RETURNING id::int`,
    );
    const { id } = rows[0] as { id: number };
    expect(id).toBeGreaterThan(last);
    last = id;
    await service.query('INSERT INTO purchase_games SELECT $1, id FROM games', [id]);
    await service.query('INSERT INTO purchase_references VALUES ($1, $2)', [`order-${id}`, id]);
    await service.query('UPDATE purchases SET user_id = 2 WHERE id = $1', [id]);
  };
  await buy();
  for (const step of steps('partition-purchases.sql')) {
    await operator.query(step);
    await buy();
  }
  expect(await shape('purchases')).toEqual(before);
  expect(await around()).toEqual(neighbours);
  expect(await queryRows(`SELECT pg_get_viewdef('purchase_shares')`)).toEqual(view);
  expect(
    await queryRows('SELECT game_id::int, sum(amount)::int FROM purchase_shares GROUP BY 1 ORDER BY 1'),
  ).toEqual([
    { game_id: 1, sum: 51 * 6 },
    { game_id: 2, sum: 50 * 6 },
  ]);
  expect(
    await queryRows(
      `SELECT count(*)::int AS copies FROM purchase_games WHERE user_id = 2 AND email = 'buyer@example.com'`,
    ),
  ).toEqual([{ copies: 2 * 6 }]);
  const toNothing = `INSERT INTO purchase_games (purchase_id, game_id, email) VALUES (999, 1, 'nobody@example.com')`;
  await expect(service.query(toNothing)).rejects.toThrow('foreign key');
  await expect(
    service.query('INSERT INTO purchase_references VALUES ($1, $2)', ['order-1', last]),
  ).rejects.toThrow('purchase_references_pkey');
  await service.query('DELETE FROM purchases WHERE id = $1', [last]);
  expect(await queryRows('SELECT count(*)::int FROM purchase_references')).toEqual([{ count: 5 }]);
  expect(await queryRows('SELECT max(purchase_id)::int FROM purchase_games')).toEqual([{ max: last - 1 }]);
});

test('partitions audit events, which still reject changes', async () => {
  const record = `INSERT INTO audit_events (event, user_id) VALUES ('user.signed_in', 1) RETURNING id::int`;
  const before = await shape('audit_events');
  let last = 0;
  const added = async () => {
    const [row] = (await service.query<{ id: number }>(record)).rows;
    expect(row!.id).toBeGreaterThan(last);
    last = row!.id;
  };
  await added();
  for (const step of steps('partition-audit-events.sql')) {
    await operator.query(step);
    await added();
  }
  expect(await shape('audit_events')).toEqual(before);
  expect(await queryRows('SELECT count(*)::int AS rows FROM audit_events_0')).toEqual([{ rows: 5 }]);
  await operator.query(`INSERT INTO audit_events_1 (id, event) VALUES (1999999999, 'user.signed_in')`);
  for (const table of ['audit_events', 'audit_events_0', 'audit_events_1']) {
    await service.query(`UPDATE ${table} SET details = details - 'network'`);
    for (const change of [`UPDATE ${table} SET user_id = 2`, `DELETE FROM ${table}`, `TRUNCATE ${table}`])
      await expect(service.query(change)).rejects.toThrow('audit events are not changed');
  }
  // Deleting old events after newer ones went to another partition.
  await operator.query(`SELECT setval(pg_get_serial_sequence('audit_events', 'id'), 1000000000)`);
  await operator.query('DROP TABLE audit_events_0');
  await added();
});

test('a step that cannot get its lock fails quickly, changes nothing, and succeeds the next time', async () => {
  const [first, second, third, ...others] = steps('partition-builds.sql') as [string, string, string];
  await operator.query(first);
  await operator.query(second);
  await service.query('BEGIN');
  await service.query('SELECT count(*) FROM builds');
  const before = await shape('builds');
  await expect(operator.query(third)).rejects.toThrow('lock timeout');
  await operator.query('ROLLBACK');
  expect(await shape('builds')).toEqual(before);
  await service.query('COMMIT');
  for (const step of [third, ...others]) await operator.query(step);
});

describe('an index that a migration builds on a partitioned table', () => {
  const NAME = 'purchases_source_idx';
  let source: DataSource;
  let runner: QueryRunner;

  const build = () => buildIndex(runner, NAME, 'purchases (source)');
  const buy = () =>
    service.query(
      `INSERT INTO purchases (email, source, currency, amount) VALUES ('buyer@example.com', 'web', 'USD', 101)`,
    );
  const indexes = () =>
    queryRows(`
      SELECT i.indexrelid::regclass::text AS name, i.indrelid::regclass::text AS of, i.indisvalid AS valid,
             h.inhparent::regclass::text AS part_of
      FROM pg_index i LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
      WHERE pg_get_indexdef(i.indexrelid) LIKE '%(source)' ORDER BY 1`);
  const whole = [
    { name: 'purchases_0_source_idx', of: 'purchases_0', valid: true, part_of: NAME },
    { name: 'purchases_1_source_idx', of: 'purchases_1', valid: true, part_of: NAME },
    { name: NAME, of: 'purchases', valid: true, part_of: null },
  ];

  beforeEach(async () => {
    for (const step of steps('partition-purchases.sql')) await operator.query(step);
    for (let i = 0; i < 3; i++) await buy();
    source = await new DataSource(
      dataSourceOptions({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: 1 }),
    ).initialize();
    runner = source.createQueryRunner();
    await runner.query(`SET lock_timeout = '200ms'`);
  });
  afterEach(async () => {
    await runner.release();
    await source.destroy();
  });

  test('exists on each partition, including later ones', async () => {
    await build();
    expect(await indexes()).toEqual(whole);
    await build();
    expect(await indexes()).toEqual(whole);
    await operator.query(
      'CREATE TABLE purchases_2 PARTITION OF purchases FOR VALUES FROM (2000000000) TO (3000000000)',
    );
    expect(await indexes()).toContainEqual({
      name: 'purchases_2_source_idx',
      of: 'purchases_2',
      valid: true,
      part_of: NAME,
    });
    await dropIndex(runner, NAME);
    expect(await indexes()).toEqual([]);
  });

  test('is completed after an attempt that failed half way', async () => {
    await operator.query(`CREATE INDEX ${NAME} ON ONLY purchases (source)`);
    await expect(
      operator.query('CREATE UNIQUE INDEX CONCURRENTLY purchases_0_source_idx ON purchases_0 (source)'),
    ).rejects.toThrow('could not create unique index');
    expect(await indexes()).toContainEqual({ name: NAME, of: 'purchases', valid: false, part_of: null });
    await build();
    expect(await indexes()).toEqual(whole);
  });

  test('waits for a long write to a partition, and other writes do not', async () => {
    await build();
    await dropIndex(runner, NAME);
    await operator.query(`CREATE INDEX ${NAME} ON ONLY purchases (source)`);
    await operator.query('BEGIN');
    await operator.query('UPDATE purchases SET quantity = 2 WHERE id = (SELECT min(id) FROM purchases)');
    const building = build();
    await until(async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return (await operator.query(waiting)).rows.length > 0;
    });
    // The build is still waiting.
    await buy();
    await operator.query('COMMIT');
    await building;
    expect(await indexes()).toEqual(whole);
    expect(await runner.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '200ms' }]);
  });
});
