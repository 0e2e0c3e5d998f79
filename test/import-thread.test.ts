import { setTimeout as sleep } from 'node:timers/promises';
import { demoRecords } from '../src/importing/demo';
import { importOnThread } from '../src/importing/import-thread';
import { everything, game, importDirectly, ndjson, OPERATOR_TOKEN, user } from './support/importing';
import { type Answer, databaseUrl, failure, logged, ok, PEPPER, send, sql, useStore } from './support/store';
import { until } from './support/time';

useStore({ OPERATOR_TOKEN });

/** What is longer than a MiB is imported on a thread: a blank line makes it so. */
async function sendLong(lines: object[]): Promise<Answer> {
  const { status, body } = await send('POST', '/operator/import', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/x-ndjson' },
    body: `${ndjson(lines)}\n${' '.repeat(1024 * 1024)}`,
  });
  return { status, body };
}

test('a thread imports what this one would', async () => {
  const lines = [...demoRecords({ users: 50, games: 100, purchases: 300, password: 'a password' })];
  expect((await sendLong(lines)).status).toBe(200);
  const stored = await everything();
  const again = await importDirectly(lines);
  expect(Object.values(again).every((counts) => counts.new === 0 && counts.changed === 0)).toBe(true);
  expect(await everything()).toEqual(stored);
});

test('problems are told, and change nothing', async () => {
  const before = await everything();
  expect(await sendLong([user(9001), game(9001, { user_id: 9002 }), { type: 'user' }])).toEqual(
    failure(
      400,
      'line 2: game 9001: user 9002 does not exist',
      'line 3: user: id is required',
      'line 3: user: username is required',
    ),
  );
  expect(await everything()).toEqual(before);
});

test('a connection that is lost is 503', async () => {
  const importing = () =>
    sql<{ pid: number }>(`SELECT pid FROM pg_stat_activity WHERE application_name = 'gamewharf import'
                          AND datname = current_database() AND wait_event_type = 'Lock'`);
  const lock = sql('LOCK TABLE users IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(20)').catch(() => undefined);
  const answer = sendLong([user(9001)]);
  await until(async () => (await importing()).length > 0, 15_000);
  await sql('SELECT pg_terminate_backend($1)', [(await importing())[0]!.pid]);
  expect(await answer).toEqual(failure(503, 'service unavailable'));
  await sql(
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LOCK TABLE users%' AND state = 'active'`,
  );
  await lock;
  expect(await sendLong([user(9001)])).toMatchObject(
    ok({ summary: ['users 1 new, 0 changed, 0 unchanged'] }),
  );
});

test('a thread that crashes fails its import', async () => {
  const settings = { DATABASE_URL: databaseUrl(), pepper: undefined as unknown as Buffer };
  const source = (async function* () {
    yield Buffer.from(ndjson([user(9002)]));
  })();
  await expect(importOnThread(settings, source, new AbortController().signal)).rejects.toThrow(
    'the import crashed',
  );
  expect(logged.join('')).toContain('An import crashed');
});

test('an import that is interrupted undoes everything', async () => {
  const interruption = new AbortController();
  const source = (async function* () {
    yield Buffer.from(`${ndjson([user(9003)])}\n`);
    await sleep(200);
    interruption.abort();
    await sleep(60_000, undefined, { ref: false });
  })();
  await expect(
    importOnThread({ DATABASE_URL: databaseUrl(), pepper: Buffer.from(PEPPER) }, source, interruption.signal),
  ).rejects.toThrow(/abort/i);
  expect(await sql('SELECT FROM users WHERE id = 9003')).toEqual([]);
});
