import { request } from 'node:http';
import { getStorageToken } from '@nestjs/throttler';
import { Collection } from '../../src/collections/collection.entity';
import { Settings } from '../../src/platform/config/settings';
import { Database } from '../../src/platform/database/database';
import { IdempotencyService, MAX_STORED_BYTES } from '../../src/idempotency/idempotency.service';
import { DAY_MS } from '../../src/platform/formats/durations';
import type { MemoryStorage } from '../../src/platform/limits/memory-storage';
import { ExpiredRows } from '../../src/platform/database/expired-rows';
import { type Actor } from '../support/actor';
import { baseUrl, openApp, theApp, theClock, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { blocked, holdLocks, untilBlocked } from '../support/locks';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

type Fields = Record<string, string | number>;

async function post(
  actor: Actor,
  path: string,
  fields: Fields,
  key: string,
  more: Record<string, string> = {},
) {
  const { status, body } = await send('POST', path, {
    headers: {
      ...actor.headers,
      ...more,
      'content-type': 'application/x-www-form-urlencoded',
      'idempotency-key': key,
    },
    body: new URLSearchParams(
      Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]),
    ).toString(),
  });
  return { status, body };
}

const owned = ({ id }: Actor) => sql('SELECT id FROM collections WHERE user_id = $1', [id]);
const USED = failure(400, 'Idempotency-Key was used with other parameters');
const MALFORMED = failure(400, 'Idempotency-Key must be given once, as 1 to 255 printable ASCII characters');

test('repeats the first response for the same key without a second effect', async () => {
  const { owner } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  expect(first.status).toBe(200);
  await sql(`UPDATE collections SET title = 'Renamed' WHERE user_id = $1`, [owner.id]);
  expect(await post(owner, '/collections', { title: 'One' }, 'a')).toEqual(first);
  expect(await post(owner, '/collections', { title: 'One' }, 'b')).not.toEqual(first);
  expect(await owned(owner)).toHaveLength(2);
});

test('writes with a key to a locked collection wait outside the connection pool', async () => {
  const { owner } = await actors();
  const { id } = await make.collection({ owner });
  const game = await make.game({ owner });
  const { commit } = await holdLocks(`SELECT FROM collections WHERE id = ${id} FOR UPDATE`);
  const add = (_: unknown, i: number) =>
    post(owner, `/collections/${id}/add-game`, { game_id: game.id }, `write ${i}`);
  const added = Promise.all(Array.from({ length: 12 }, add));
  await until(() => theApp().get(Database).connections.waiting === 10);
  await untilBlocked(2);
  expect(await blocked()).toHaveLength(2);
  await commit();
  expect((await added).map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
});

test('returns 429 to a new key when a user has used up the storage for responses', async () => {
  const { owner, stranger } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  // A response that uses the whole quota, and one that uses what becomes available again in a minute.
  const limit = MAX_STORED_BYTES / (MAX_STORED_BYTES + 60 * 3108);
  const quota = { name: 'stored-responses', key: `stored-responses:user ${owner.id}`, limit, ttl: DAY_MS };
  await theApp().get<MemoryStorage>(getStorageToken()).add(quota, 1);
  const rejected = await send('POST', '/collections', {
    headers: { ...owner.headers, 'idempotency-key': 'b' },
  });
  expect(rejected).toMatchObject(failure(429, 'rate limit exceeded'));
  expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(30);
  expect(await owned(owner)).toHaveLength(1);
  expect(await post(owner, '/collections', { title: 'One' }, 'a')).toEqual(first);
  expect((await owner.post('/collections', { title: 'Two' })).status).toBe(200);
  expect((await post(stranger, '/collections', { title: 'Two' }, 'b')).status).toBe(200);
  theClock().advance(61_000);
  expect((await post(owner, '/collections', { title: 'Two' }, 'b')).status).toBe(200);
});

test('counts the row of a stored response as well as its bytes', async () => {
  const { owner } = await actors();
  const increment = jest.spyOn(theApp().get<MemoryStorage>(getStorageToken()), 'increment');
  try {
    const { body } = await post(owner, '/collections', { title: 'One' }, 'a');
    const limits = increment.mock.calls.flatMap(([key, , limit]) =>
      key.startsWith('stored') ? [limit] : [],
    );
    expect(limits.map((limit) => Math.round(MAX_STORED_BYTES / limit))).toEqual([
      Buffer.byteLength(JSON.stringify(body)) + 300,
    ]);
  } finally {
    increment.mockRestore();
  }
});

test('counts a stored response after the commit, so that no transaction waits for Redis', async () => {
  const { owner } = await actors();
  let count = () => {};
  const storage = theApp().get<MemoryStorage>(getStorageToken());
  const increment = storage.increment.bind(storage);
  const spy = jest.spyOn(storage, 'increment').mockImplementation(async (...values) => {
    if (values[4] === 'stored-responses') await new Promise<void>((done) => (count = done));
    return increment(...values);
  });
  try {
    const response = post(owner, '/collections', { title: 'One' }, 'a');
    await until(async () => (await owned(owner)).length === 1);
    count();
    expect((await response).status).toBe(200);
  } finally {
    spy.mockRestore();
  }
});

test('compares parameters, not how they are sent', async () => {
  const { owner } = await actors();
  const first = await post(owner, '/collections', { title: 'One', private: 'yes' }, 'a');
  const asJson = await send('POST', '/collections', {
    headers: { ...owner.headers, 'content-type': 'application/json', 'idempotency-key': 'a' },
    body: JSON.stringify({ private: true, title: ' One ' }),
  });
  expect({ status: asJson.status, body: asJson.body }).toEqual(first);
  expect(await post(owner, '/collections', { title: 'Two', private: 'yes' }, 'a')).toEqual(USED);
  expect(await owned(owner)).toHaveLength(1);
});

test('distinguishes equal keys on different routes', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const { id } = await make.collection({ owner });
  expect((await post(owner, `/collections/${id}/add-game`, { game_id: game.id }, 'a')).status).toBe(200);
  expect(await post(owner, `/collections/${id}/remove-game`, { game_id: game.id }, 'a')).toEqual(USED);
  const other = await make.collection({ owner });
  expect(await post(owner, `/collections/${other.id}/add-game`, { game_id: game.id }, 'a')).toEqual(USED);
});

test('distinguishes equal keys of different credentials', async () => {
  const { owner, stranger } = await actors();
  const another = owner.with(await make.key({ owner }));
  for (const actor of [owner, another, stranger])
    expect((await post(actor, '/collections', { title: 'One' }, 'a')).status).toBe(200);
  expect(await owned(owner)).toHaveLength(2);
  expect(await owned(stranger)).toHaveLength(1);
});

test('distinguishes equal keys of different users, even after an import assigns the credential to another user', async () => {
  const { owner, stranger } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  await sql('UPDATE api_keys SET user_id = $2 WHERE user_id = $1', [owner.id, stranger.id]);
  const readUserId = async () => ((await owner.get('/profile')).body as { user: { id: number } }).user.id;
  await until(async () => (await readUserId()) === stranger.id);
  const second = await post(owner, '/collections', { title: 'One' }, 'a');
  expect(second.status).toBe(200);
  expect(second).not.toEqual(first);
  expect(await post(owner, '/collections', { title: 'One' }, 'a')).toEqual(second);
  expect(await owned(owner)).toHaveLength(1);
  expect(await owned(stranger)).toHaveLength(1);
});

test('repeats a response that the previous version stored without a user', async () => {
  const { owner } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  await sql('UPDATE idempotency_keys SET user_id = NULL');
  expect(await post(owner, '/collections', { title: 'One' }, 'a')).toEqual(first);
  expect(await owned(owner)).toHaveLength(1);
});

test('supports a key on every write', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const { id } = await make.collection({ owner, games: [game] });
  const writes: [string, Fields][] = [
    [`/collections/${id}`, { title: 'New' }],
    [`/collections/${id}/collection-games/${game.id}`, { blurb: 'x' }],
    [`/collections/${id}/order`, { game_ids: `[${game.id}]` }],
    [`/collections/${id}/remove-game`, { game_id: game.id }],
    [`/collections/${id}/add-game`, { game_id: game.id }],
    [`/collections/${id}/delete`, {}],
  ];
  const first = [];
  for (const [path, fields] of writes) first.push(await post(owner, path, fields, path));
  expect(first.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  expect(first[3]!.body).toEqual({ success: true, removed: true });
  // The collection is deleted, but its responses are still available.
  for (const [i, [path, fields]] of writes.entries())
    expect(await post(owner, path, fields, path)).toEqual(first[i]);
});

test('does not store error responses', async () => {
  const { owner, stranger } = await actors();
  const game = await make.game({ owner, visibility: 'private' });
  expect(await post(stranger, '/collections', { game_id: game.id }, 'a')).toEqual(
    failure(404, 'invalid game'),
  );
  await sql(`UPDATE games SET visibility = 'public' WHERE id = $1`, [game.id]);
  expect((await post(stranger, '/collections', { game_id: game.id }, 'a')).status).toBe(200);
  expect(await sql('SELECT FROM idempotency_keys WHERE answer IS NULL')).toEqual([]);
});

test('executes one of several concurrent requests and sends its response to all', async () => {
  const { owner } = await actors();
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => post(owner, '/collections', { title: 'One' }, 'a')),
  );
  expect(new Set(responses.map((response) => JSON.stringify(response))).size).toBe(1);
  expect(responses[0]!.status).toBe(200);
  expect(await owned(owner)).toHaveLength(1);
});

test('recognizes a key on another replica', async () => {
  const { owner } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  const replica = await openApp({ DATABASE_URL: theApp().get(Settings).DATABASE_URL });
  try {
    const response = await fetch(`${await replica.getUrl()}/collections`, {
      method: 'POST',
      headers: {
        ...owner.headers,
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': 'a',
      },
      body: 'title=One',
    });
    expect({ status: response.status, body: await response.json() }).toEqual(first);
  } finally {
    await replica.close();
  }
});

test('supports a retry when the client did not read the response', async () => {
  const { owner } = await actors();
  await new Promise<void>((resolve) => {
    const lost = request(`${baseUrl()}/collections`, {
      method: 'POST',
      headers: {
        ...owner.headers,
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': 'a',
      },
    });
    lost.on('error', () => resolve());
    lost.on('close', () => resolve());
    lost.end('title=One', () => setImmediate(() => lost.destroy()));
  });
  await Promise.all([1, 2].map(() => post(owner, '/collections', { title: 'One' }, 'a')));
  expect(await owned(owner)).toHaveLength(1);
});

test('stores neither effect nor key when a transaction is killed', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const { id } = await make.collection({ owner });
  const database = theApp().get(Database);
  let response: ReturnType<typeof post> | undefined;
  await database.transaction(async (db) => {
    await db.query('SELECT FROM collections WHERE id = $1 FOR UPDATE', [id]);
    response = post(owner, `/collections/${id}/add-game`, { game_id: game.id }, 'a');
    let killed: unknown[] = [];
    while (killed.length === 0)
      killed = await sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
  });
  expect(await response).toEqual(failure(503, 'service unavailable'));
  expect(await sql('SELECT FROM idempotency_keys WHERE credential LIKE $1', ['%'])).toEqual(
    await sql('SELECT FROM idempotency_keys WHERE answer IS NOT NULL'),
  );
  expect((await post(owner, `/collections/${id}/add-game`, { game_id: game.id }, 'a')).status).toBe(200);
  expect(await sql('SELECT game_id FROM collection_games WHERE collection_id = $1', [id])).toEqual([
    { game_id: game.id },
  ]);
});

test('deletes a key after a day, when it can be reused', async () => {
  const { owner } = await actors();
  const first = await post(owner, '/collections', { title: 'One' }, 'a');
  await post(owner, '/collections', { title: 'Two' }, 'b');
  await sql(`UPDATE idempotency_keys SET created_at = now() - interval '23 hours 59 minutes'`);
  const kept = async () => (await sql('SELECT FROM idempotency_keys')).length;
  const sweep = () => theApp().get(ExpiredRows).sweep();
  const before = await kept();
  await sweep();
  expect(await kept()).toBe(before);
  expect(await post(owner, '/collections', { title: 'One' }, 'a')).toEqual(first);
  await sql(`UPDATE idempotency_keys SET created_at = now() - interval '24 hours 1 minute'`);
  expect(await post(owner, '/collections', { title: 'Three' }, 'a')).toMatchObject({
    body: { collection: { title: 'Three' } },
  });
  const old = `SELECT FROM idempotency_keys WHERE created_at < now() - interval '24 hours'`;
  expect((await sql(old)).length).toBeGreaterThan(0);
  await sweep();
  expect(await sql(old)).toEqual([]);
  expect(await kept()).toBeGreaterThan(0);
  expect(await post(owner, '/collections', { title: 'Three' }, 'a')).toMatchObject({
    body: { collection: { title: 'Three' } },
  });
  expect(await owned(owner)).toHaveLength(3);
});

test.each([[''], ['x'.repeat(256)], ['caf\u00e9'], ['a\tb']])('validates the key %j', async (key) => {
  const { owner } = await actors();
  expect(await post(owner, '/collections', {}, key)).toEqual(MALFORMED);
  expect(await owned(owner)).toEqual([]);
});

test('rejects two keys on one request', async () => {
  const { owner } = await actors();
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const twice = request(`${baseUrl()}/collections`, {
      method: 'POST',
      headers: { ...owner.headers, 'Idempotency-Key': ['a', 'b'] },
    });
    twice.on('response', (response) => resolve(response.resume().statusCode));
    twice.on('error', reject);
    twice.end();
  });
  expect(status).toBe(400);
});

test('stores what work with repositories returns, and rolls back both', async () => {
  const { owner } = await actors();
  const key = { credential: `user ${owner.id}`, user_id: owner.id, key: 'a', route: '/notes' };
  const idempotency = theApp().get(IdempotencyService);
  const created = (title: string, fails = false) =>
    idempotency.once(key, { title: 'One' }, async (manager) => {
      const { id } = await manager!.save(Collection, {
        user_id: owner.id,
        title,
        layout: 'grid',
      } as Collection);
      if (fails) throw new Error('late');
      return { id };
    });
  await expect(created('One', true)).rejects.toThrow('late');
  expect(await owned(owner)).toEqual([]);
  const first = await created('One');
  expect(await created('Two')).toEqual(first);
  expect(await owned(owner)).toEqual([first]);
});
