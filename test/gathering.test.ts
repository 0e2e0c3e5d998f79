import type { Pool } from 'pg';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { Database } from '../src/database/database';
import { statement } from '../src/database/statement';
import { openApp, sql, theApp, useStore } from './support/store';

useStore();

const WHO = statement('gathering_who', 'SELECT $1::int AS asked, pg_backend_pid() AS pid');
const DIVIDED = statement('gathering_divided', 'SELECT 1 / $1::int AS part');
const NOTED = statement('gathering_noted', `INSERT INTO audit_events (event) VALUES ('gathering')`);
const ASLEEP = statement('gathering_asleep', 'SELECT pg_sleep(30)');

const database = () => theApp().get(Database);
const who = (asked: number) => database().row<{ asked: number; pid: number }>(WHO, [asked]);
const pool = () => (database().source.driver as PostgresDriver).master as Pool;

test('statements of one turn leave on as few connections as carry eight each', async () => {
  // A busy machine takes its time to open them.
  await Promise.allSettled(Array.from({ length: 20 }, (_, i) => who(i)));
  const rows = await Promise.all(Array.from({ length: 20 }, (_, i) => who(i)));
  expect(rows.map((row) => row!.asked)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(new Set(rows.map((row) => row!.pid)).size).toBe(3);
});

test('one that fails fails alone, and its connection serves on', async () => {
  const [before, failed, after] = await Promise.allSettled([who(1), database().row(DIVIDED, [0]), who(2)]);
  expect(failed).toMatchObject({ status: 'rejected', reason: { code: '22012' } });
  expect(before).toMatchObject({ value: { asked: 1 } });
  expect(after).toMatchObject({ value: { asked: 2 } });
  const pid = (before as PromiseFulfilledResult<{ pid: number }>).value.pid;
  expect(await sql('SELECT pid FROM pg_stat_activity WHERE pid = $1', [pid])).toHaveLength(1);
});

test('what writes is not run again for the sake of a lookup that failed beside it', async () => {
  const outcomes = await Promise.allSettled([
    who(1),
    database().row(DIVIDED, [0]),
    database().rows(NOTED, []),
    who(2),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(await sql(`SELECT FROM audit_events WHERE event = 'gathering'`)).toHaveLength(1);
});

test('a value that cannot be written fails its statement, and the connection serves on', async () => {
  const circular: unknown[] = [];
  circular.push({ circular });
  await expect(database().row(WHO, [circular[0]])).rejects.toThrow(/circular/);
  expect(await who(4)).toMatchObject({ asked: 4 });
});

test.each([true, false])('columns are those of the statement; prepared: %s', async (prepared) => {
  const wide = statement('gathering_wide', `SELECT 1 AS one, NULL AS none, ARRAY['a', 'b'] AS letters`);
  const app = await openApp({ DATABASE_PREPARED_STATEMENTS: String(prepared) });
  const database = app.get(Database);
  for (let time = 0; time < 2; time++)
    expect(
      await Promise.all([database.row(wide, []), database.row(WHO, [7]), database.row(wide, [])]),
    ).toEqual([
      { one: 1, none: null, letters: ['a', 'b'] },
      { asked: 7, pid: expect.any(Number) },
      { one: 1, none: null, letters: ['a', 'b'] },
    ]);
  await app.close();
});

test('a lost connection fails those that left with it, leaves the pool, and is replaced', async () => {
  const sleeping = database().row(ASLEEP, []);
  const behind = who(1);
  const lost = Promise.allSettled([sleeping, behind]);
  let ended: unknown[] = [];
  while (ended.length === 0)
    ended = await sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query = $1 AND state = 'active' AND datname = current_database()`,
      [ASLEEP.text],
    );
  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await who(3)).toMatchObject({ asked: 3 });
  expect(pool().totalCount - pool().idleCount).toBe(0);
});
