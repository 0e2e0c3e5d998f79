import { DataSource } from 'typeorm';
import { Database } from '../../src/platform/database/database';
import { bind, type Statement, statement } from '../../src/platform/database/statement';
import { sql, theApp, useStore } from '../support/store';

useStore();

const NOTED = statement<{ transaction: string }>(
  'write_queues_noted',
  'INSERT INTO notes (n) VALUES ($1) RETURNING pg_current_xact_id()::text AS transaction',
);
const DIVIDED = statement('write_queues_divided', 'SELECT 1 / $1::int AS part');
const ASLEEP = statement('write_queues_asleep', 'SELECT pg_sleep(30)');
const LONG = statement('write_queues_long', 'SELECT pg_sleep(0.3)');
const HELD = statement('write_queues_held', 'SELECT FROM things WHERE id = $1 FOR UPDATE');

const database = () => theApp().get(Database);
const noted = async () => (await sql<{ n: number }>('SELECT n FROM notes ORDER BY id')).map(({ n }) => n);

/** Locks an object, records a number, and then divides by another. */
const change = (n: number, { lock = 1, divisor = 1 } = {}) =>
  database().write({
    statements: [bind(HELD, [lock]), bind(NOTED, [n]), bind(DIVIDED, [divisor])],
    result: (rowsOf) => rowsOf(NOTED)[0]!.transaction,
    lock: {
      of: 'collections',
      id: lock,
    },
  });

const writeOf = (asleep: Statement, lock: number) =>
  database().write({
    statements: [bind(asleep, [])],
    result: () => undefined,
    lock: { of: 'collections', id: lock },
  });

const slowChange = (lock: number) => writeOf(ASLEEP, lock);

beforeAll(async () => {
  await sql('CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY, n int)');
  await sql('CREATE TABLE things AS SELECT id FROM generate_series(1, 100) id');
});
afterEach(() => sql('DELETE FROM notes'));

test('writes that wait for a transaction share the next one in order', async () => {
  const [first, ...others] = await Promise.all([1, 2, 3, 4, 5].map((n) => change(n)));
  expect(new Set(others).size).toBe(1);
  expect(others[0]).not.toBe(first);
  expect(await noted()).toEqual([1, 2, 3, 4, 5]);
});

test('writes with different locks share a transaction while others are running, in the order of the locks', async () => {
  const transactions = await Promise.all([9, 8, 7, 6, 5, 4].map((n) => change(n, { lock: n })));
  expect(new Set(transactions).size).toBe(3);
  expect(new Set(transactions.slice(2)).size).toBe(1);
  expect((await noted()).filter((n) => n < 8)).toEqual([4, 5, 6, 7]);
});

test('a failed write is rolled back completely and affects no other', async () => {
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((n) => change(n, { divisor: n === 3 ? 0 : 1 })));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[2]).toMatchObject({ reason: { code: '22012' } });
  expect(await noted()).toEqual([1, 2, 4]);
});

test('a failed write does not affect writes with other locks', async () => {
  const outcomes = await Promise.allSettled(
    [1, 2, 3, 4, 5, 4].map((lock, n) => change(n, { lock, divisor: n === 3 ? 0 : 1 })),
  );
  expect(
    outcomes.map(({ status }, n) => ({ status, n })).filter(({ status }) => status === 'rejected'),
  ).toEqual([{ status: 'rejected', n: 3 }]);
  expect((await noted()).sort()).toEqual([0, 1, 2, 4, 5]);
});

test('a lock held elsewhere delays no other write', async () => {
  const holder = theApp().get(DataSource).createQueryRunner();
  await holder.startTransaction();
  await holder.query('SELECT FROM things WHERE id = 4 FOR UPDATE');
  try {
    const done: number[] = [];
    const changes = [1, 2, 3, 4, 5].map((lock) => change(lock, { lock }).then(() => void done.push(lock)));
    await Promise.all(changes.filter((_, i) => i !== 3));
    expect(done.sort()).toEqual([1, 2, 3, 5]);
    // Nor those that arrive while it is held.
    await change(6, { lock: 6 });
    await holder.commitTransaction();
    await changes[3];
  } finally {
    await holder.release();
  }
  expect((await noted()).sort()).toEqual([1, 2, 3, 4, 5, 6]);
});

test('transactions that hang delay no others', async () => {
  const slow = [11, 12].map(slowChange);
  expect(await change(1)).toMatch(/^\d+$/);
  await Promise.all(slow.map(ended));
});

test('a write follows a slow one with the same lock', async () => {
  const long = writeOf(LONG, 1);
  await Promise.all([long, change(1), change(2)]);
  expect(await noted()).toEqual([1, 2]);
});

test('a lost connection rejects the writes behind it, and the queue continues', async () => {
  const slow = slowChange(1);
  const behind = change(1);
  const lost = Promise.allSettled([slow, behind]);
  await ended(slow);
  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await change(2)).toMatch(/^\d+$/);
  expect(await noted()).toEqual([2]);
});

async function ended(slow: Promise<unknown>): Promise<void> {
  let over = false;
  const failed = expect(slow.finally(() => (over = true))).rejects.toThrow();
  while (!over)
    await sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query = $1 AND state = 'active' AND datname = current_database()`,
      [ASLEEP.text],
    );
  await failed;
}
