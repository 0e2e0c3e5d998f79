import { Client } from 'pg';
import { hashApiKey, newApiKey } from '../../src/auth/api-key';
import { KeyChanges } from '../../src/auth/key-changes';
import { elapse, questionsOf, Replicas, sixMinutesLater } from '../support/remembering';
import { statementsOf } from '../support/statements';
import { baseUrl, databaseUrl, make, PEPPER, sql, theApp, useStore } from '../support/store';
import { moment, until } from '../support/time';

useStore();
// What is promised in milliseconds is measured here, on machines that others use too.
jest.retryTimes(2);

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

describe('a key that two replicas have known for longer than they would without looking', () => {
  const replicas = new Replicas(/^live_api_keys$/);
  const known = (key: string) => replicas.know(ask(key), good('profile:me'));
  const seen = (key: string, answer: string) => replicas.see(ask(key), answer);

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
      'replaced by another one',
      INVALID,
      (id) =>
        sql('UPDATE api_keys SET key_hash = $2 WHERE id = $1', [
          id,
          hashApiKey(newApiKey(), Buffer.from(PEPPER)),
        ]),
    ],
    ['deleted with its user', INVALID, (_, { id }) => sql('DELETE FROM users WHERE id = $1', [id])],
    ['ended early', INVALID, (id) => sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id])],
    [
      'given other scopes',
      good('collection:view'),
      (id) => sql(`UPDATE api_keys SET scopes = '{collection:view}' WHERE id = $1`, [id]),
    ],
    [
      'changed with more than can be told apart',
      good('profile:games'),
      () =>
        sql(`INSERT INTO api_keys (key_hash, hint, user_id)
             SELECT sha256(n::text::bytea), 'many', (SELECT min(id) FROM users) FROM generate_series(1, 10500) n;
             UPDATE api_keys SET scopes = '{profile:games}'`),
    ],
    ['taken away with all others', INVALID, () => sql('TRUNCATE api_keys CASCADE')],
  ])('is seen to be %s within a second', async (_change, answer, change) => {
    const { key, id, owner } = await keyOfUser();
    await known(key);
    await change(id, owner);
    await seen(key, answer);
  });

  test('is seen to be revoked by a transaction that commits late, behind later ones', async () => {
    const [{ key, id }, other] = [await keyOfUser(), await keyOfUser()];
    await onOneConnection(async (slow) => {
      await slow.query('BEGIN');
      await slow.query(REVOKE, [id]);
      await known(key);
      await sql(REVOKE, [other.id]);
      await known(key);
      await slow.query('COMMIT');
      await seen(key, INVALID);
    });
  });

  test('ends in time, though nothing changes', async () => {
    const { key, id } = await keyOfUser();
    await sql(`UPDATE api_keys SET expires_at = now() + interval '2 seconds' WHERE id = $1`, [id]);
    const ends = performance.now() + 2000;
    await known(key);
    await moment(ends - performance.now());
    expect(await replicas.answers(ask(key))).toEqual([INVALID, INVALID]);
  });

  test('is asked for again where looking fails', async () => {
    const { key, id } = await keyOfUser();
    await known(key);
    // A look names the column, and a change does not.
    await sql('ALTER TABLE api_key_changes RENAME xid TO broken');
    try {
      await sql(REVOKE, [id]);
      await seen(key, INVALID);
    } finally {
      await sql('ALTER TABLE api_key_changes RENAME broken TO xid');
    }
  });

  test('opens nothing where the database hangs', async () => {
    const { key } = await keyOfUser();
    await known(key);
    replicas.proxy.freeze();
    try {
      await moment(750);
      expect(await replicas.answers(ask(key))).toEqual([
        good('profile:me'),
        '{"errors":["service unavailable"]}',
      ]);
    } finally {
      replicas.proxy.thaw();
    }
  });

  test.each([
    ['long ago, and what came since may have been swept', sixMinutesLater],
    ['on another server', () => replicas.moveToAnotherServer()],
  ])('is asked for again where the last look was %s', async (_last, happens) => {
    const { key, id } = await keyOfUser();
    await known(key);
    try {
      happens();
      await sql(`
        UPDATE api_keys SET revoked_at = now() WHERE id = ${id};
        DELETE FROM api_key_changes WHERE xid = pg_current_xact_id()`);
      await seen(key, INVALID);
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('costs no statement after another one changed', async () => {
    const [{ key }, other] = [await keyOfUser(), await keyOfUser()];
    await known(other.key);
    await known(key);
    await sql(REVOKE, [other.id]);
    await seen(other.key, INVALID);
    expect(await statementsOf(() => replicas.answers(ask(key)))).toEqual([]);
  });

  test('costs no statement after thousands of others changed at once', async () => {
    const [{ key }, other] = [await keyOfUser(), await keyOfUser()];
    await sql(
      `INSERT INTO api_keys (key_hash, hint, user_id)
       SELECT sha256(concat($1::bigint, ' ', n)::bytea), 'others', $1 FROM generate_series(1, 3000) n`,
      [other.owner.id],
    );
    await known(other.key);
    await known(key);
    await sql('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [other.owner.id]);
    await seen(other.key, INVALID);
    expect(await statementsOf(() => replicas.answers(ask(key)))).toEqual([]);
  });

  test('is asked for again where more have changed than are kept apart', async () => {
    const { key } = await keyOfUser();
    await known(key);
    const changes = theApp().get(KeyChanges);
    const questions = () => statementsOf(() => ask(key)(baseUrl()));
    const { changedAt } = changes as unknown as { changedAt: Map<number, number> };
    for (let other = 1; changedAt.size < 50_000; other++) changes.note([-other]);
    await known(key);
    expect(await questions()).toEqual([]);
    changes.note([-100_000]);
    expect(await questions()).toEqual(['live_api_keys']);
  });

  test('is still noted to be used', async () => {
    const { key, id } = await keyOfUser();
    const used = async () =>
      (await sql(`SELECT FROM api_keys WHERE id = $1 AND last_used_at > '2021-01-01'`, [id])).length;
    await known(key);
    await until(async () => (await used()) === 1);
    await sql(`UPDATE api_keys SET last_used_at = '2020-01-01' WHERE id = $1`, [id]);
    await replicas.answers(ask(key));
    await moment(1200);
    expect(await used()).toBe(0);
    elapse(61_000);
    try {
      await replicas.answers(ask(key));
      await until(async () => (await used()) === 1);
    } finally {
      jest.restoreAllMocks();
    }
  });
});

test('what changes a key is noted, and nothing else is', async () => {
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

test('what was noted is swept after it was seen for ten minutes', async () => {
  const [{ key, id }, asking] = [await keyOfUser(), await keyOfUser()];
  await sql(REVOKE, [id]);
  const notes = async () => (await sql('SELECT FROM api_key_changes WHERE api_key_id = $1', [id])).length;
  const questions = questionsOf(theApp());
  const askUntil = (condition: () => Promise<boolean> | boolean) =>
    until(async () => (await ask(asking.key)(baseUrl())) !== '' && condition());
  try {
    elapse(11 * 60_000);
    const looks = () => questions.named(/^poll_api_key_changes$/);
    const before = looks();
    await askUntil(() => looks() > before + 1);
    expect(await notes()).toBe(1);
    elapse(22 * 60_000);
    await askUntil(async () => (await notes()) === 0);
  } finally {
    jest.restoreAllMocks();
  }
  expect(await ask(key)(baseUrl())).toBe(INVALID);
});
