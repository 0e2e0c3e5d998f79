import { setImmediate } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import type { EntityManager } from 'typeorm';
import { connectionOptions } from '../../src/platform/database/data-source';
import { Database } from '../../src/platform/database/database';
import { NotConnected } from '../../src/platform/database/sqlstates';
import { bind, longRead, read, statement } from '../../src/platform/database/statement';
import { getPool } from '../support/pool';
import { untilBlocked, holdLocks } from '../support/locks';
import { openApp, theApp, theClock, useStore } from '../support/app';
import { sql } from '../support/sql';

useStore();

const NUMBER = read<{ asked: number }>('batcher_number', 'SELECT $asked::int AS asked');
const DIVIDED = read('batcher_divided', 'SELECT 1 / $divisor::int AS part');
const NOTED = statement('batcher_noted', `INSERT INTO audit_events (event) VALUES ('batcher')`);
const EVENT = statement('batcher_event', 'INSERT INTO audit_events (event) VALUES ($event)');
const IS_NULL = read('batcher_is_null', 'SELECT false AS null');
const ASLEEP = read('batcher_asleep', 'SELECT pg_sleep(30)');

/** Waits while another transaction holds the lock. */
const LOCKED = longRead('batcher_locked', 'SELECT pg_advisory_xact_lock_shared(1) IS NULL AS null');
const LOCKED_SMALL = read('batcher_locked_small', 'SELECT pg_advisory_xact_lock_shared(1) IS NULL AS null');
const IN_TURN = longRead(
  'batcher_in_turn',
  'SELECT pg_advisory_xact_lock_shared(1) IS NULL AS null, $user_id::int',
  'user $user_id',
);
const ROW_LOCKED = statement('batcher_row_locked', 'SELECT pg_advisory_xact_lock($row)', 'row $row');
const LONG_DIVIDED = longRead('batcher_long_divided', 'SELECT 1 / $divisor::int AS part');

const database = () => theApp().get(Database);
const number = (asked: number) => database().row(NUMBER, { asked });
const pool = () => getPool(theApp());

/** The connections on which the work was sent: ours, whatever a pooler does behind them. */
async function recordConnections(work: () => Promise<unknown>): Promise<Set<PoolClient>> {
  const taken = new Set<PoolClient>();
  const take = (client: PoolClient) => void taken.add(client);
  pool().on('acquire', take);
  await work();
  pool().off('acquire', take);
  return taken;
}

test('sends the statements of one tick in batches of eight', async () => {
  const numbers = Array.from({ length: 20 }, (_, i) => i);
  // A busy machine takes a while to open them.
  await Promise.allSettled(numbers.map(number));
  let rows: ({ asked: number } | undefined)[] = [];
  const taken = await recordConnections(async () => (rows = await Promise.all(numbers.map(number))));
  expect(rows.map((row) => row!.asked)).toEqual(numbers);
  expect(taken.size).toBe(3);
});

test('a failed statement does not affect others or its connection', async () => {
  let responses: PromiseSettledResult<unknown>[] = [];
  const taken = await recordConnections(async () => {
    responses = await Promise.allSettled([number(1), database().row(DIVIDED, { divisor: 0 }), number(2)]);
  });
  const [before, failed, after] = responses;
  expect(failed).toMatchObject({ status: 'rejected', reason: { code: '22012' } });
  expect(before).toMatchObject({ value: { asked: 1 } });
  expect(after).toMatchObject({ value: { asked: 2 } });
  for (const connection of await recordConnections(() => number(3))) expect(taken).toContain(connection);
});

test.each([
  ['own connection', () => database().row(DIVIDED, { divisor: 0 })],
  ['in a batch', async () => (await Promise.all([number(1), database().row(DIVIDED, { divisor: 0 })]))[1]],
  ['in a transaction', () => database().execute([bind(NUMBER, { asked: 1 }), bind(DIVIDED, { divisor: 0 })])],
])('an error names its statement and its caller: %s', async (_, failing) => {
  const error = await failing().then(undefined, (error: Error) => error);
  expect(error).toMatchObject({ statement: 'batcher_divided', message: 'division by zero' });
  expect((error as Error).stack).toContain('statement-batcher.test.ts');
});

test('does not repeat a write because of a failed lookup in its batch', async () => {
  const outcomes = await Promise.allSettled([
    number(1),
    database().row(DIVIDED, { divisor: 0 }),
    database().rows(NOTED, {}),
    number(2),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(await sql(`SELECT FROM audit_events WHERE event = 'batcher'`)).toHaveLength(1);
});

test('fails only the statement of an unserializable value, and keeps the connection', async () => {
  const circular: unknown[] = [];
  circular.push({ circular });
  await expect(database().row(NUMBER, { asked: circular[0] })).rejects.toThrow(/circular/);
  expect(await number(4)).toMatchObject({ asked: 4 });
});

// The pooler of these tests doesn't track prepared statements.
test.each(process.env.TEST_POOLER_URL ? [false] : [true, false])(
  'returns the columns of each statement; prepared: %s',
  async (prepared) => {
    const wide = read('batcher_wide', `SELECT 1 AS one, NULL AS none, ARRAY['a', 'b'] AS letters`);
    const app = await openApp({ DATABASE_PREPARED_STATEMENTS: String(prepared) });
    const database = app.get(Database);
    for (let time = 0; time < 2; time++)
      expect(
        await Promise.all([
          database.row(wide, {}),
          database.row(NUMBER, { asked: 7 }),
          database.row(wide, {}),
        ]),
      ).toEqual([
        { one: 1, none: null, letters: ['a', 'b'] },
        { asked: 7 },
        { one: 1, none: null, letters: ['a', 'b'] },
      ]);
    await app.close();
  },
);

test('a lost connection fails its batch, is removed from the pool, and replaced', async () => {
  const sleeping = database().row(ASLEEP, {});
  const behind = number(1);
  const lost = Promise.allSettled([sleeping, behind]);
  let ended: unknown[] = [];
  while (ended.length === 0)
    ended = await sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query = $1 AND state = 'active' AND datname = current_database()`,
      [ASLEEP.text],
    );
  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await number(3)).toMatchObject({ asked: 3 });
  expect(pool().totalCount - pool().idleCount).toBe(0);
});

test('batches small statements while two fifths of the connections are busy with others', async () => {
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const reads: Promise<unknown>[] = [];
  const most = { busy: 0, waiting: 0 };
  const watch = () => {
    most.busy = Math.max(most.busy, database().connections.busy);
    most.waiting = Math.max(most.waiting, database().connections.waiting);
  };
  const taken: PoolClient[] = [];
  const take = (client: PoolClient) => void taken.push(client);
  pool().on('acquire', take);
  for (let turn = 0; turn < 20; turn++) {
    reads.push(database().row(turn < 4 ? LOCKED_SMALL : IS_NULL, {}));
    await setImmediate();
    watch();
  }
  pool().on('acquire', watch);
  await commit();
  expect(await Promise.all(reads)).toEqual(Array.from({ length: 20 }, () => ({ null: false })));
  pool().off('acquire', watch);
  pool().off('acquire', take);
  expect(most).toEqual({ busy: 4, waiting: 2 });
  // Sixteen waited, and were sent in two batches.
  expect(taken).toHaveLength(6);
});

test('limits long statements to half of the connections, so that a short one never waits for them', async () => {
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const long = Promise.all(Array.from({ length: 12 }, () => database().row(LOCKED, {})));
  await untilBlocked(5);
  // All long statements still wait for the lock.
  expect(await number(1)).toEqual({ asked: 1 });
  expect(database().connections).toMatchObject({ busy: 5, waiting: 7 });
  await commit();
  expect(await long).toHaveLength(12);
});

test('a client with many long statements takes turns with others', async () => {
  const asked = (user_id: number) => database().rows(IN_TURN, { user_id });
  theClock().stop();
  await asked(2);
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const many = Promise.all(Array.from({ length: 20 }, () => asked(1)));
  const other = asked(2);
  await untilBlocked(4);
  expect(database().connections).toMatchObject({ busy: 4, waiting: 17 });
  await commit();
  await Promise.all([many, other]);
});

test('writes to a locked row delay no other write', async () => {
  theClock().stop();
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const write = (row: number) => database().execute([bind(ROW_LOCKED, { row })]);
  const locked = Promise.all(Array.from({ length: 10 }, () => write(1)));
  await untilBlocked(2);
  await Promise.all([2, 3, 4, 5, 6].map(write));
  expect(database().connections).toMatchObject({ busy: 2, waiting: 8 });
  await commit();
  await locked;
});

test('transactions leave two of ten connections to reads, and those of one user eight', async () => {
  theClock().stop();
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const locked = (db: EntityManager) => db.query('SELECT pg_advisory_xact_lock_shared(1)');
  const begin = (turn?: string) => database().transaction(locked, { concurrencyKey: turn });
  const same = Promise.all(Array.from({ length: 4 }, () => begin('user 7')));
  await untilBlocked(2);
  const others = Promise.all(Array.from({ length: 10 }, () => begin()));
  await untilBlocked(8);
  expect(await number(1)).toEqual({ asked: 1 });
  expect(database().connections).toMatchObject({ busy: 8, waiting: 6 });
  await commit();
  await Promise.all([same, others]);
});

test('transactions leave one of two connections to reads', async () => {
  const replica = (await openApp({ DATABASE_POOL_SIZE: '2' })).get(Database);
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const locked = (db: EntityManager) => db.query('SELECT pg_advisory_xact_lock_shared(1)');
  const begun = Promise.all(Array.from({ length: 3 }, () => replica.transaction(locked)));
  await untilBlocked(1);
  expect(await replica.row(NUMBER, { asked: 1 })).toEqual({ asked: 1 });
  expect(replica.connections).toMatchObject({ busy: 1, waiting: 2 });
  await commit();
  await begun;
});

test('sends the statements of a write as one transaction, and rolls it back if one fails', async () => {
  const noted = bind(NOTED, {});
  const count = async () => (await sql(`SELECT FROM audit_events WHERE event = 'batcher'`)).length;
  const before = await count();
  await expect(database().execute([noted, bind(DIVIDED, { divisor: 0 })])).rejects.toMatchObject({
    code: '22012',
  });
  expect(await count()).toBe(before);
  const getRows = await database().execute([noted, bind(DIVIDED, { divisor: 1 })]);
  expect(getRows(DIVIDED)).toEqual([{ part: 1 }]);
  expect(await count()).toBe(before + 1);
});

test('sends statements within a transaction, also those that failed before', async () => {
  const named = (event: string | null) => bind(EVENT, { event });
  await database().transaction(async (manager) => {
    await manager.query('SAVEPOINT before');
    await expect(database().execute([named(null)], manager)).rejects.toMatchObject({ code: '23502' });
    await manager.query('ROLLBACK TO before');
    await database().execute([named('batcher_own'), named('batcher_own')], manager);
    await database().execute([named('batcher_own')], manager);
    expect(await sql(`SELECT FROM audit_events WHERE event = 'batcher_own'`)).toEqual([]);
  });
  expect(await sql(`SELECT FROM audit_events WHERE event = 'batcher_own'`)).toHaveLength(3);
});

test('releases the limit when a long statement fails', async () => {
  const failing = Array.from({ length: 12 }, () => database().row(LONG_DIVIDED, { divisor: 0 }));
  expect((await Promise.allSettled(failing)).every(({ status }) => status === 'rejected')).toBe(true);
  expect(await database().row(LONG_DIVIDED, { divisor: 1 })).toEqual({ part: 1 });
});

test.each([
  ['a long', LOCKED, 5],
  ['a small', LOCKED_SMALL, 4],
])('rejects %s statement that waits too long, but not later ones', async (_, locked, most) => {
  const { commit } = await holdLocks('SELECT pg_advisory_xact_lock(1)');
  const busy: Promise<unknown>[] = [];
  for (let one = 0; one < most; one++) {
    busy.push(database().row(locked, {}));
    await setImmediate();
  }
  theClock().stop();
  const early = database().row(locked, {});
  const rejected = expect(early).rejects.toBeInstanceOf(NotConnected);
  await setImmediate();
  theClock().advance(connectionOptions.connectionTimeoutMillis);
  const late = database().row(locked, {});
  await commit();
  await rejected;
  expect(await late).toEqual({ null: false });
  await Promise.all(busy);
});

test('transactions that wait for one another end, and later ones are not affected', async () => {
  const small = await openApp({ DATABASE_POOL_SIZE: '2' });
  const database = small.get(Database);
  const nested = () => database.transaction(() => database.execute([bind(EVENT, { event: 'nested' })]));
  expect(await Promise.allSettled([nested(), nested()])).toEqual(
    Array(2).fill({ status: 'rejected', reason: expect.any(NotConnected) as Error }),
  );
  await database.execute([bind(EVENT, { event: 'later' })]);
  expect(await sql(`SELECT event FROM audit_events WHERE event IN ('nested', 'later')`)).toEqual([
    { event: 'later' },
  ]);
  await small.close();
});
