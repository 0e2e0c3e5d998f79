import { Database } from '../src/database/database';
import { statement } from '../src/database/statement';
import { sql, theApp, useStore } from './support/store';

useStore();

const NOTED = statement(
  'queues_noted',
  'INSERT INTO notes (n) VALUES ($1) RETURNING pg_current_xact_id()::text AS transaction',
);
const DIVIDED = statement('queues_divided', 'SELECT 1 / $1::int AS part');
const ASLEEP = statement('queues_asleep', 'SELECT pg_sleep(30)');

const database = () => theApp().get(Database);
const noted = async () => (await sql<{ n: number }>('SELECT n FROM notes ORDER BY id')).map(({ n }) => n);

/** Notes a number, and then divides by another. */
const change = (n: number, divisor = 1) =>
  database().flight(async (db) => {
    const [row] = await Promise.all([
      db.row<{ transaction: string }>(NOTED, [n]),
      db.row(DIVIDED, [divisor]),
    ]);
    return row!.transaction;
  }, 'a queue');

beforeAll(() => sql('CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY, n int)'));
afterEach(() => sql('DELETE FROM notes'));

test('what waits while a transaction is under way leaves as one, in its order', async () => {
  const [first, ...others] = await Promise.all([1, 2, 3, 4, 5].map((n) => change(n)));
  expect(new Set(others).size).toBe(1);
  expect(others[0]).not.toBe(first);
  expect(await noted()).toEqual([1, 2, 3, 4, 5]);
});

test('one that fails leaves nothing behind, and takes nobody with it', async () => {
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((n) => change(n, n === 3 ? 0 : 1)));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[2]).toMatchObject({ reason: { code: '22012' } });
  expect(await noted()).toEqual([1, 2, 4]);
});

test('other queues do not wait', async () => {
  const slow = database().flight((db) => db.rows(ASLEEP, []), 'a slow queue');
  expect(await change(1)).toMatch(/^\d+$/);
  await ended(slow);
});

test('behind a connection that is lost nobody waits, and the queue goes on', async () => {
  const slow = database().flight((db) => db.rows(ASLEEP, []), 'a queue');
  const behind = change(1);
  const lost = Promise.allSettled([slow, behind]);
  await ended(slow);
  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await change(2)).toMatch(/^\d+$/);
  expect(await noted()).toEqual([2]);
});

async function ended(slow: Promise<unknown>): Promise<void> {
  const failed = expect(slow).rejects.toThrow();
  let found: unknown[] = [];
  while (found.length === 0)
    found = await sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query = $1 AND state = 'active' AND datname = current_database()`,
      [ASLEEP.text],
    );
  await failed;
}
