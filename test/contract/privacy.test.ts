import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { Client } from 'pg';
import { getMetadataArgsStorage } from 'typeorm';
import * as erasure from '../../src/operator/people/erasure-statements';
import { SCANNED } from '../../src/operator/people/export-parts';
import { personalRows, storedColumns } from '../../src/platform/database/personal-data';
import { cloneDatabase } from '../support/database';

const load = jest.requireActual as (path: string) => unknown;
// The entities of the service register themselves when they are loaded.
for (const file of readdirSync('src', { recursive: true, encoding: 'utf8' }))
  if (file.endsWith('.entity.ts')) load(resolve('src', file));

const tables = new Map(getMetadataArgsStorage().tables.map(({ name, target }) => [name!, target]));

const declared = () =>
  [...tables].flatMap(([table, entity]) =>
    storedColumns(entity).flatMap(({ columns }) => columns.map((column) => `${table}.${column}`)),
  );

async function asked(sql: string): Promise<string[]> {
  const { url, drop } = await cloneDatabase();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<{ name: string }>(sql)).rows.map(({ name }) => name);
  } finally {
    await client.end();
    await drop();
  }
}

const stored = () =>
  asked(
    `SELECT table_name || '.' || column_name AS name
     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'migrations'`,
  );

test('@StoredColumns describes every column once: purpose, retention and erasure', async () => {
  const database = await stored();
  const described = declared();
  expect({
    'are described but not in the database': described.filter((place) => !database.includes(place)),
    'are not described': database.filter((place) => !described.includes(place)),
    'are described twice': described.filter((place, i) => described.indexOf(place) < i),
  }).toEqual({
    'are described but not in the database': [],
    'are not described': [],
    'are described twice': [],
  });
});

/** Tables with personal data that aren't exported or erased by themselves, and why. */
const ELSEWHERE = {
  exported: { purchase_games: 'copies of the purchase, whose line contains the games' },
  erased: {
    purchase_games: 'triggers copy the buyer of the purchase',
    games: 'stay on sale, and a trigger updates the name of their owner',
    bundles: 'stay on sale, with the ID of their owner',
  },
};

test('every table that references an account is in the export and in the erasure', async () => {
  const ofPeople = await asked(
    `SELECT conrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'f' AND confrelid = 'users'::regclass
     UNION SELECT table_name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('user_id', 'account_id')
       AND table_name NOT IN (SELECT viewname FROM pg_views) ORDER BY name`,
  );
  const scanned = SCANNED.map(({ entity }) => entity);
  const isExported = (table: string) =>
    personalRows(tables.get(table)) !== undefined || scanned.includes(tables.get(table) as never);
  const statements = JSON.stringify(erasure);
  const isErased = (table: string) =>
    personalRows(tables.get(table))?.erasure !== undefined ||
    new RegExp(`(DELETE FROM|UPDATE) ${table}\\b`).test(statements);
  expect({
    'not exported': ofPeople.filter((table) => !isExported(table) && !(table in ELSEWHERE.exported)),
    'not erased': ofPeople.filter((table) => !isErased(table) && !(table in ELSEWHERE.erased)),
  }).toEqual({ 'not exported': [], 'not erased': [] });
});
