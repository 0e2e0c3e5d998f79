import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { getMetadataArgsStorage } from 'typeorm';
import * as erasure from '../../src/operator/people/erasure-statements';
import { PARTS } from '../../src/operator/people/export-parts';
import { cloneDatabase } from '../support/database';

const PAGE = 'docs/explanation/privacy.md';

// `| `table` | `column`, `column` | ...`
const ROW = /^\| `(\w+)` +\| ((?:`\w+`(?:, )?)+) +\|/gm;

const onPage = () =>
  [...readFileSync(PAGE, 'utf8').matchAll(ROW)].flatMap(([, table, columns]) =>
    [...columns!.matchAll(/`(\w+)`/g)].map(([, column]) => `${table}.${column}`),
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

test(`${PAGE} documents every column once: personal data or not, purpose and retention`, async () => {
  const [page, database] = [onPage(), await stored()];
  expect({
    'are on the page but not in the database': page.filter((place) => !database.includes(place)),
    'have no row on the page': database.filter((place) => !page.includes(place)),
    'are on the page twice': page.filter((place, i) => page.indexOf(place) < i),
  }).toEqual({
    'are on the page but not in the database': [],
    'have no row on the page': [],
    'are on the page twice': [],
  });
});

/** Tables with personal data that no part of an export and no statement of an erasure names, and why. */
const ELSEWHERE = {
  exported: { purchase_games: 'copies of the purchase, whose line contains the games' },
  erased: {
    purchase_games: 'triggers copy the buyer of the purchase',
    games: 'stay on sale, and a trigger updates the name of their owner',
  },
};

test('every table that references an account is in the export and in the erasure', async () => {
  const ofPeople = await asked(
    `SELECT conrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'f' AND confrelid = 'users'::regclass
     UNION SELECT table_name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('user_id', 'account_id')
       AND table_name NOT IN (SELECT viewname FROM pg_views) ORDER BY name`,
  );
  const { tables } = getMetadataArgsStorage();
  const exported = PARTS.map(({ entity }) => tables.find(({ target }) => target === entity)!.name!);
  const statements = JSON.stringify(erasure);
  const erased = ofPeople.filter((table) => new RegExp(`(DELETE FROM|UPDATE) ${table}\\b`).test(statements));
  expect({
    'not exported': ofPeople.filter((table) => !exported.includes(table) && !(table in ELSEWHERE.exported)),
    'not erased': ofPeople.filter((table) => !erased.includes(table) && !(table in ELSEWHERE.erased)),
  }).toEqual({ 'not exported': [], 'not erased': [] });
});
