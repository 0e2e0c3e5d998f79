import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { cloneDatabase } from '../support/database';

const PAGE = 'docs/explanation/privacy.md';

// `| `table` | `column`, `column` | ...`
const ROW = /^\| `(\w+)` +\| ((?:`\w+`(?:, )?)+) +\|/gm;

const onPage = () =>
  [...readFileSync(PAGE, 'utf8').matchAll(ROW)].flatMap(([, table, columns]) =>
    [...columns!.matchAll(/`(\w+)`/g)].map(([, column]) => `${table}.${column}`),
  );

async function stored(): Promise<string[]> {
  const { url, drop } = await cloneDatabase();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ place: string }>(
      `SELECT table_name || '.' || column_name AS place
       FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
       WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'migrations'`,
    );
    return rows.map(({ place }) => place);
  } finally {
    await client.end();
    await drop();
  }
}

test(`${PAGE} says of every column, once, whether it is about people, why, and for how long`, async () => {
  const [page, database] = [onPage(), await stored()];
  expect({
    'are on the page, and not in the database': page.filter((place) => !database.includes(place)),
    'have no row on the page': database.filter((place) => !page.includes(place)),
    'stand on the page twice': page.filter((place, i) => page.indexOf(place) < i),
  }).toEqual({
    'are on the page, and not in the database': [],
    'have no row on the page': [],
    'stand on the page twice': [],
  });
});
