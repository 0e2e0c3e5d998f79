import { Client } from 'pg';
import { hashApiKey, newApiKey } from '../../src/auth/keys/api-key';
import { KeyChanges } from '../../src/auth/keys/key-changes';
import { ApiKeyUses } from '../../src/auth/keys/api-key-uses';
import { Replicas } from '../support/replicas';
import { statementsOf } from '../support/statements';
import { baseUrl, databaseUrl, make, PEPPER, sql, theApp, theClock, useStore } from '../support/store';
import { until } from '../support/time';

useStore();

const good = (...scopes: string[]) => JSON.stringify({ type: 'key', scopes });
const INVALID = '{"errors":["invalid key"]}';

const ask = (key: string) => async (url: string) =>
  (await fetch(`${url}/credentials/info`, { headers: { authorization: `Bearer ${key}` } })).text();

async function keyOfUser() {
  const owner = await make.user();
  const key = newApiKey();
  await make.key({ owner, text: key, scopes: ['profile:me'] });
  const [row] = await sql<{ id: number }>('SELECT max(id) AS id FROM api_keys');
  return { owner, key, id: row!.id };
}

const REVOKE = 'UPDATE api_keys SET revoked_at = now() WHERE id = $1';

async function onOneConnection(work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: databaseUrl() });
  await client.connect();
  await work(client).finally(() => client.end());
}

describe('a key that two replicas cache while polls find no change', () => {
  const replicas = new Replicas(KeyChanges);
  const cached = (key: string) => replicas.cache(ask(key), good('profile:me'));
  const expectAfterPoll = (key: string, response: string) => replicas.expectAfterPoll(ask(key), response);

  test.each<[string, string, (id: number, owner: { id: number }) => Promise<unknown>]>([
    ['revoked', INVALID, (id) => sql(REVOKE, [id])],
    [
      'revoked with triggers turned off',
      INVALID,
      (id) =>
        onOneConnection(async (client) => {
          await client.query('SET session_replication_role = replica');
          await client.query(REVOKE, [id]);
        }),
    ],
    [
      'replaced by another key',
      INVALID,
      (id) =>
        sql('UPDATE api_keys SET key_hash = $2 WHERE id = $1', [
          id,
          hashApiKey(newApiKey(), Buffer.from(PEPPER)),
        ]),
    ],
    ['deleted with its user', INVALID, (_, { id }) => sql('DELETE FROM users WHERE id = $1', [id])],
    ['expired early', INVALID, (id) => sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id])],
    [
      'whose scopes change',
      good('collection:view'),
      (id) => sql(`UPDATE api_keys SET scopes = '{collection:view}' WHERE id = $1`, [id]),
    ],
    [
      'one of more changed keys than one poll lists',
      good('profile:games'),
      () =>
        sql(`INSERT INTO api_keys (key_hash, hint, user_id)
             SELECT sha256(n::text::bytea), 'many', (SELECT min(id) FROM users) FROM generate_series(1, 10500) n;
             UPDATE api_keys SET scopes = '{profile:games}'`),
    ],
    ['deleted with all others', INVALID, () => sql('TRUNCATE api_keys CASCADE')],
  ])('is invalid or updated after the next poll when it is %s', async (_change, response, change) => {
    const { key, id, owner } = await keyOfUser();
    await cached(key);
    await change(id, owner);
    await expectAfterPoll(key, response);
  });

  test('is invalid after the commit of a revocation, even after transactions that began later', async () => {
    const [{ key, id }, other] = [await keyOfUser(), await keyOfUser()];
    await onOneConnection(async (slow) => {
      await slow.query('BEGIN');
      await slow.query(REVOKE, [id]);
      await cached(key);
      await sql(REVOKE, [other.id]);
      await cached(key);
      await slow.query('COMMIT');
      await expectAfterPoll(key, INVALID);
    });
  });

  /** Advances the clock by a minute, in which both replicas poll and get requests. */
  const passMinute = async (key: string) => {
    for (let seconds = 0; seconds < 60; seconds += 20) {
      theClock().advance(20_000);
      await replicas.poll();
      await replicas.responses(ask(key));
    }
  };

  test('is looked up again when it expires, even if nothing changes', async () => {
    const { key, id } = await keyOfUser();
    await sql(`UPDATE api_keys SET expires_at = now() + interval '100 seconds' WHERE id = $1`, [id]);
    await cached(key);
    await passMinute(key);
    const lookups = () => statementsOf(() => ask(key)(baseUrl()));
    expect(await lookups()).toEqual([]);
    theClock().advance(29_000);
    await replicas.poll();
    expect(await lookups()).toEqual([]);
    theClock().advance(11_000);
    await replicas.poll();
    expect(await lookups()).toEqual(['live_api_keys']);
  });

  test('expires 700 ms after the last successful poll', async () => {
    const { key, id } = await keyOfUser();
    await cached(key);
    // Breaks polls, which select the column by name. Changes still get recorded.
    await sql('ALTER TABLE api_key_changes RENAME xid TO broken');
    try {
      await sql(REVOKE, [id]);
      theClock().advance(699);
      await expectAfterPoll(key, good('profile:me'));
      theClock().advance(1);
      await expectAfterPoll(key, INVALID);
    } finally {
      await sql('ALTER TABLE api_key_changes RENAME broken TO xid');
    }
  });

  test('is not accepted while the database does not respond', async () => {
    const { key } = await keyOfUser();
    await cached(key);
    replicas.proxy.freeze();
    try {
      theClock().advance(700);
      await replicas.pollers[0]!.poll();
      expect(await replicas.responses(ask(key))).toEqual([
        good('profile:me'),
        '{"errors":["service unavailable"]}',
      ]);
    } finally {
      replicas.proxy.thaw();
    }
  });

  test.each([
    [
      'was long ago, because records of changes may have been deleted since',
      () => theClock().setTimeOfDay(theClock().now() + 6 * 60_000),
    ],
    ['was on another server', () => replicas.moveToAnotherServer()],
  ])('is looked up again if the last poll %s', async (_last, happens) => {
    const { key, id } = await keyOfUser();
    await cached(key);
    try {
      happens();
      await sql(`
        UPDATE api_keys SET revoked_at = now() WHERE id = ${id};
        DELETE FROM api_key_changes WHERE xid = pg_current_xact_id()`);
      await expectAfterPoll(key, INVALID);
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('costs no statement after a change to another key', async () => {
    const [{ key }, other] = [await keyOfUser(), await keyOfUser()];
    await cached(other.key);
    await cached(key);
    await sql(REVOKE, [other.id]);
    await expectAfterPoll(other.key, INVALID);
    expect(await statementsOf(() => replicas.responses(ask(key)))).toEqual([]);
  });

  test('costs no statement after thousands of other keys change at once', async () => {
    const [{ key }, other] = [await keyOfUser(), await keyOfUser()];
    await sql(
      `INSERT INTO api_keys (key_hash, hint, user_id)
       SELECT sha256(concat($1::bigint, ' ', n)::bytea), 'others', $1 FROM generate_series(1, 3000) n`,
      [other.owner.id],
    );
    await cached(other.key);
    await cached(key);
    await sql('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [other.owner.id]);
    await expectAfterPoll(other.key, INVALID);
    expect(await statementsOf(() => replicas.responses(ask(key)))).toEqual([]);
  });

  test('is looked up again after more changes than are tracked individually', async () => {
    const { key } = await keyOfUser();
    await cached(key);
    const changes = theApp().get(KeyChanges);
    const questions = () => statementsOf(() => ask(key)(baseUrl()));
    const { changedAt } = changes as unknown as { changedAt: Map<number, number> };
    for (let other = 1; changedAt.size < 50_000; other++) changes.note([-other]);
    await cached(key);
    expect(await questions()).toEqual([]);
    changes.note([-100_000]);
    expect(await questions()).toEqual(['live_api_keys']);
  });

  test('has its last use recorded once per minute', async () => {
    const { key, id } = await keyOfUser();
    const flush = () => Promise.all(replicas.apps.map((app) => app.get(ApiKeyUses).flush()));
    const secondsSince = async () => {
      const since = 'extract(epoch FROM now() - last_used_at)::float8';
      const [row] = await sql<{ seconds: number }>(`SELECT ${since} AS seconds FROM api_keys WHERE id = $1`, [
        id,
      ]);
      return row!.seconds;
    };
    const usedBefore = (seconds: number) =>
      sql('UPDATE api_keys SET last_used_at = now() - make_interval(secs => $2) WHERE id = $1', [
        id,
        seconds,
      ]);
    await cached(key);
    await flush();
    expect(await secondsSince()).toBeLessThan(20);
    await usedBefore(30);
    expect(await statementsOf(() => replicas.responses(ask(key)))).toEqual([]);
    await flush();
    expect(await secondsSince()).toBeGreaterThan(29);
    await usedBefore(61);
    await replicas.responses(ask(key));
    await flush();
    expect(await secondsSince()).toBeLessThan(20);
  });
});

test('records a change to a key and no other change', async () => {
  const [one, other] = [await keyOfUser(), await keyOfUser()];
  const noted = async () => Number((await sql('SELECT count(*) AS n FROM api_key_changes'))[0]!.n);
  for (const [change, rows] of [
    [`UPDATE api_keys SET last_used_at = now(), label = 'used'`, 0],
    [`UPDATE api_keys SET scopes = scopes, revoked_at = NULL WHERE id IN (${one.id}, ${other.id})`, 0],
    [`INSERT INTO api_keys (key_hash, hint, user_id) VALUES (sha256('new'), 'new', ${one.owner.id})`, 0],
    [`UPDATE api_keys SET user_id = ${other.owner.id} WHERE id = ${one.id}`, 1],
    [`UPDATE api_keys SET scopes = NULL WHERE id IN (${one.id}, ${other.id})`, 2],
    [`SET LOCAL search_path = ''; UPDATE public.api_keys SET revoked_at = now() WHERE id = ${one.id}`, 1],
    [`BEGIN; SAVEPOINT a; DELETE FROM api_keys; ROLLBACK TO a; COMMIT`, 0],
    [
      `UPDATE api_keys SET revoked_at = now() - interval '1 hour' WHERE id = ${one.id};
      DELETE FROM api_keys WHERE id = ${one.id}`,
      1,
    ],
    [`TRUNCATE api_keys CASCADE`, 1],
  ] as const) {
    const before = await noted();
    await sql(change);
    expect([change, (await noted()) - before]).toEqual([change, rows]);
  }
});

test('deletes records of changes ten minutes after a poll reads them', async () => {
  const [{ key, id }, active] = [await keyOfUser(), await keyOfUser()];
  await sql(REVOKE, [id]);
  const changes = theApp().get(KeyChanges);
  changes.stopPolling();
  theClock().stop();
  const stored = async () => (await sql('SELECT FROM api_key_changes WHERE api_key_id = $1', [id])).length;
  // On a busy machine, a request or a poll may fail, and polls stop while nothing is requested.
  const poll = () =>
    until(async () => {
      for (let i = 0; i < 2; i++) await ask(active.key)(baseUrl());
      await changes.poll();
      return (changes as unknown as { confirmedAt: number }).confirmedAt === theClock().monotonic();
    });
  try {
    theClock().advance(11 * 60_000);
    await poll();
    theClock().advance(9 * 60_000);
    await poll();
    expect(await stored()).toBe(1);
    theClock().advance(2 * 60_000);
    await poll();
    await until(async () => (await stored()) === 0);
  } finally {
    changes.startPolling();
  }
  expect(await ask(key)(baseUrl())).toBe(INVALID);
});
