import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../src/database/data-source';
import { administer, withDatabase } from './support/database';

// The migrations of the last release, and the statements that its replicas send. They go on to send them while the new
// release's migrations run and afterwards, until the last of them is replaced.
const LAST = '0.1.0';
const { migrations, statements } = JSON.parse(
  readFileSync(join(__dirname, 'upgrade', `${LAST}.json`), 'utf8'),
) as { migrations: string[]; statements: string[] };

const name = `gamewharf_upgrade_${process.pid}`;
const url = withDatabase(process.env.TEST_SERVER_URL!, name);
const client = new Client({ connectionString: url });
const parametersOf = (text: string) =>
  Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));

interface Column {
  column: string;
  type: string;
  required: boolean;
}

const COLUMNS = `
  SELECT c.relname || '.' || a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type,
         a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')`;
const columns = async () => (await client.query<Column>(COLUMNS)).rows;

async function migrate(these: (name: string) => boolean): Promise<void> {
  const source = new DataSource(dataSourceOptions({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 }));
  await source.initialize();
  const wanted = source.migrations.filter((one) => these(one.name ?? one.constructor.name));
  source.migrations.splice(0, source.migrations.length, ...wanted);
  await source.runMigrations();
  await source.destroy();
}

let before: Column[];

beforeAll(async () => {
  await administer((admin) => admin.query(`CREATE DATABASE ${name}`));
  await migrate((one) => migrations.includes(one));
  await client.connect();
  before = await columns();
  for (const [i, text] of statements.entries()) await client.query(`PREPARE s${i} AS ${text}`);
  await migrate(() => true);
});

afterAll(async () => {
  await client.end();
  await administer((admin) => admin.query(`DROP DATABASE ${name} WITH (FORCE)`));
});

test(`the statements that replicas of ${LAST} have prepared go on to work`, async () => {
  const failed: string[] = [];
  for (const [i, text] of statements.entries()) {
    const nulls = Array.from({ length: parametersOf(text) }, () => 'NULL').join(', ');
    await client
      .query(`EXPLAIN EXECUTE s${i}${nulls && `(${nulls})`}`)
      .catch((error: Error) => failed.push(`${error.message}: ${text}`));
  }
  expect(failed).toEqual([]);
  expect(statements.length).toBeGreaterThan(100);
});

test(`a replica of ${LAST} that starts now can prepare them`, async () => {
  const fresh = new Client({ connectionString: url });
  await fresh.connect();
  for (const [i, text] of statements.entries()) await fresh.query(`PREPARE s${i} AS ${text}`);
  await fresh.end();
});

test(`no column that ${LAST} knows has changed, and none that it does not know must be written`, async () => {
  const after = new Map((await columns()).map((one) => [one.column, one]));
  expect(before.map(({ column }) => after.get(column))).toEqual(before);
  const tables = new Set(before.map(({ column }) => column.split('.')[0]));
  const known = new Set(before.map(({ column }) => column));
  const required = [...after.values()].filter(
    ({ column, required }) => required && !known.has(column) && tables.has(column.split('.')[0]),
  );
  expect(required).toEqual([]);
});
