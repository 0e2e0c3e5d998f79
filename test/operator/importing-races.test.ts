import { type ClientRequest, request } from 'node:http';
import type { ConcurrencyLimit } from '../../src/platform/limits/concurrency-limit';
import { ImportLimits } from '../../src/operator/import/import-limits';
import {
  describeImports,
  importDirectly,
  importLines,
  type Line,
  OPERATOR_TOKEN,
  storedSales,
  expectedSales,
  sendImport,
  sendLarge,
  sendSmall,
} from '../support/importing';
import { game, purchase, user } from '../support/records';
import { untilBlocked, holdLocks } from '../support/locks';
import { baseUrl, theApp, useStore } from '../support/app';
import { failure, type HttpResponse, ok, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections CASCADE');
  await importLines(user(1), game(1));
});

const key = { type: 'download_key', id: 1, key: 'a-key', game_id: 1 };
const okWithSummary = (...summary: string[]) => ok(expect.objectContaining({ summary }));

/** Users are looked up before purchases, and keys after them. */
const holdUser = () => holdLocks('SELECT FROM users WHERE id = 1 FOR UPDATE');
const holdKey = () => holdLocks('SELECT FROM download_keys WHERE id = 1 FOR UPDATE');
const otherUser = user(1, { gamer: false });
const otherKey = { ...key, downloads: 5 };

describeImports('a purchase written by another client during an import', () => {
  afterEach(async () => expect(await storedSales()).toEqual(await expectedSales()));

  test('results in one sale if it is written before the lookup', async () => {
    const { release } = await holdUser();
    const response = sendImport([otherUser, purchase(1)]);
    await untilBlocked();
    await sendSmall([purchase(1)]);
    await release();
    expect(await response).toEqual(
      okWithSummary('users 0 new, 1 changed, 0 unchanged', 'purchases 0 new, 0 changed, 1 unchanged'),
    );
  });

  test('results in one sale if it is written after the lookup', async () => {
    await importLines(key);
    const { release } = await holdKey();
    const response = sendImport([purchase(1, { amount: 700 }), otherKey]);
    await untilBlocked();
    await sendSmall([purchase(1)]);
    await release();
    expect(await response).toEqual(
      okWithSummary('purchases 0 new, 1 changed, 0 unchanged', 'download_keys 0 new, 1 changed, 0 unchanged'),
    );
  });

  test('is created again if it is deleted before it is looked up', async () => {
    await importLines(purchase(1, { status: 'refunded' }));
    const { release } = await holdUser();
    const response = sendImport([otherUser, purchase(1, { status: 'complete' })]);
    await untilBlocked();
    await sendSmall([{ type: 'purchase', id: 1, deleted: true }]);
    await release();
    expect(await response).toEqual(
      okWithSummary('users 0 new, 1 changed, 0 unchanged', 'purchases 1 new, 0 changed, 0 unchanged'),
    );
  });

  test('is created again if it is deleted while it is about to be updated', async () => {
    await importLines(purchase(1, { status: 'refunded' }));
    const { commit } = await holdLocks('DELETE FROM purchases WHERE id = 1');
    const response = sendImport([purchase(1, { status: 'complete' })]);
    await untilBlocked();
    await commit();
    expect(await response).toEqual(okWithSummary('purchases 1 new, 0 changed, 0 unchanged'));
  });

  test('stays refunded if it is refunded after it was found unchanged', async () => {
    await importLines(purchase(1), key);
    const { release } = await holdKey();
    const response = sendImport([purchase(1), otherKey]);
    await untilBlocked();
    await sendSmall([{ type: 'purchase', id: 1, status: 'refunded' }]);
    await release();
    await response;
    expect(await sql('SELECT status FROM purchases')).toEqual([{ status: 'refunded' }]);
  });
});

// A small import would look up the purchase again after its lock timeout.
describe('a purchase that is deleted during a large import', () => {
  test('stays deleted if it was found unchanged before', async () => {
    await importLines(purchase(1), purchase(2), key);
    const { release } = await holdKey();
    const response = sendLarge([purchase(1), purchase(2, { amount: 700 }), otherKey]);
    await untilBlocked();
    await sendSmall([{ type: 'purchase', id: 1, status: 'refunded' }]);
    await sendSmall([{ type: 'purchase', id: 1, deleted: true }]);
    await release();
    expect(await response).toEqual(
      okWithSummary('purchases 0 new, 1 changed, 1 unchanged', 'download_keys 0 new, 1 changed, 0 unchanged'),
    );
    expect(await sql('SELECT id FROM purchases')).toEqual([{ id: 2 }]);
  });
});

describeImports('a game that is being sold during an import', () => {
  test('is changed without waiting for the sale', async () => {
    // A sale acquires this lock for its foreign key.
    await holdLocks('SELECT FROM games WHERE id = 1 FOR KEY SHARE');
    expect(await sendImport([game(1, { title: 'Changed' })])).toEqual(
      okWithSummary('games 0 new, 1 changed, 0 unchanged'),
    );
  });
});

describeImports('a game that an import changes', () => {
  test('is locked together with games that are sold, in the order of their IDs', async () => {
    await importLines(game(2));
    const { query, release } = await holdLocks('SELECT FROM games WHERE id = 1 FOR NO KEY UPDATE');
    const response = sendImport([game(2, { title: 'Changed' }), purchase(1)]);
    await untilBlocked();
    await query('SELECT FROM games WHERE id = 2 FOR NO KEY UPDATE NOWAIT');
    await release();
    expect(await response).toEqual(
      okWithSummary('games 0 new, 1 changed, 0 unchanged', 'purchases 1 new, 0 changed, 0 unchanged'),
    );
    expect(await sql(`SELECT id FROM games WHERE title = 'Changed'`)).toEqual([{ id: 2 }]);
    expect(await storedSales()).toEqual(await expectedSales());
  });

  test.each([
    ['completely', game(1, { slug: 'changed' })],
    ['partially', { type: 'game', id: 1, slug: 'changed' }],
  ])('is sold first if its sale has begun, and then %s changed', async (_, changed) => {
    // A sale acquires this lock first, for its foreign key.
    const { query, commit } = await holdLocks('SELECT FROM games WHERE id = 1 FOR KEY SHARE');
    const response = sendImport([changed]);
    await untilBlocked();
    await query('SELECT FROM games WHERE id = 1 FOR NO KEY UPDATE NOWAIT');
    await commit();
    expect(await response).toEqual(okWithSummary('games 0 new, 1 changed, 0 unchanged'));
  });

  test('is changed without waiting for a change of its owner', async () => {
    await holdLocks('UPDATE users SET token_generation = 1 WHERE id = 1');
    expect(await sendImport([game(1, { title: 'Changed' })])).toEqual(
      okWithSummary('games 0 new, 1 changed, 0 unchanged'),
    );
  });
});

describeImports('a renamed user', () => {
  test('has the games locked in the order of their IDs', async () => {
    await importLines(game(2, { slug: 'a' }), game(1, { slug: 'b' }));
    const { query, release } = await holdLocks('SELECT FROM games WHERE id = 1 FOR NO KEY UPDATE');
    const response = sendImport([user(1, { username: 'renamed' })]);
    await untilBlocked();
    await query('SELECT FROM games WHERE id = 2 FOR NO KEY UPDATE NOWAIT');
    await release();
    expect(await response).toEqual(okWithSummary('users 0 new, 1 changed, 0 unchanged'));
    expect(await sql(`SELECT id FROM games WHERE owner_name = 'renamed'`)).toHaveLength(2);
  });
});

describeImports('records that others refer to during an import', () => {
  const app = {
    type: 'oauth_application',
    client_id: 'app',
    user_id: 1,
    name: 'App',
    redirect_uris: ['https://app.example/'],
    scopes: ['profile:me'],
  };
  const api_key = { type: 'api_key', key: 'an-api-key', user_id: 1 };

  test('are changed without waiting for them', async () => {
    await importLines(app, api_key);
    // The locks of foreign keys of grants and of counted requests.
    await holdLocks('SELECT FROM oauth_applications, api_keys FOR KEY SHARE');
    expect(
      await sendImport([
        { ...app, name: 'Changed' },
        { ...api_key, label: 'changed' },
      ]),
    ).toEqual(
      okWithSummary(
        'api_keys 0 new, 1 changed, 0 unchanged',
        'oauth_applications 0 new, 1 changed, 0 unchanged',
      ),
    );
  });
});

describeImports('games whose sales an import changes', () => {
  const MOST = Number.MAX_SAFE_INTEGER;

  test.each([
    ['a purchase that costs more', 1, { amount: 501 }],
    ['a purchase that moves to the game', 2, { game_id: 1 }],
  ])('compares %s with what other purchases earn the game in the meantime', async (_, game_id, change) => {
    await importLines(game(2), purchase(1, { game_id }));
    const { commit } = await holdLocks(`SELECT FROM games WHERE id = 1 FOR NO KEY UPDATE;
      INSERT INTO game_earnings VALUES (1, 'USD', ${MOST})
      ON CONFLICT (game_id, currency) DO UPDATE SET amount = ${MOST}`);
    const response = sendImport([{ type: 'purchase', id: 1, ...change }]);
    await untilBlocked();
    await commit();
    expect(await response).toEqual(
      failure(400, `line 1: game 1: earnings in USD would be more than ${MOST}`),
    );
  });

  test.each([
    ['new', 2],
    ['changed', 1],
  ])('locks the games of a %s purchase in the order of their IDs', async (_, id) => {
    await importLines(game(2), game(3), purchase(1, { game_id: [2, 3] }));
    const { query, release } = await holdLocks('SELECT FROM games WHERE id = 1 FOR NO KEY UPDATE');
    const response = sendImport([purchase(id, { game_id: [3, 2, 1] })]);
    await untilBlocked();
    await query('SELECT FROM games WHERE id > 1 FOR NO KEY UPDATE NOWAIT');
    await release();
    expect(await response).toMatchObject({ status: 200 });
    expect(await storedSales()).toEqual(await expectedSales());
  });
});

describe('IDs', () => {
  test('an ID assigned by the service is not mistaken for a record imported in the meantime', async () => {
    // The large import assigns an ID to its purchase and then waits for this user.
    const { release } = await holdLocks(`INSERT INTO users (id, username) VALUES (8, 'user9')`);
    const large = importDirectly([
      user(9),
      purchase(900_000),
      { ...purchase(2), id: undefined, reference: 'made' },
    ]);
    await untilBlocked();
    const [{ last }] = (await sql('SELECT last_value AS last FROM purchases_id_seq')) as [{ last: number }];
    expect(await sendSmall([purchase(last, { amount: 1 })])).toMatchObject({ status: 200 });
    await release();
    await large;
    expect(await sql(`SELECT id FROM purchases WHERE amount = 1`)).toEqual([{ id: last }]);
    expect(await sql(`SELECT count(*) AS count FROM purchases`)).toEqual([{ count: 3 }]);
    expect(await storedSales()).toEqual(await expectedSales());
  });

  test('a request whose ID an import has just taken is rejected, and a retry gets another ID', async () => {
    const { headers } = await make.user({ username: 'collector' });
    const { commit } = await holdLocks(`
      INSERT INTO collections (id, user_id, title) VALUES (nextval('collections_id_seq') + 1, 1, 'Imported')`);
    const create = () =>
      send('POST', '/collections', {
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ title: 'Created' }),
      });
    const first = create();
    await untilBlocked();
    await commit();
    const { status, body, headers: sent } = await first;
    expect({ status, body, retry: sent.get('retry-after') }).toEqual({
      ...failure(503, 'service unavailable'),
      retry: '1',
    });
    expect(await create()).toMatchObject({ status: 200, body: { collection: { title: 'Created' } } });
    expect(await sql('SELECT title FROM collections ORDER BY id')).toEqual([
      { title: 'Imported' },
      { title: 'Created' },
    ]);
  });

  test('imports of the next IDs, sales and new collections, all at once, never overwrite each other', async () => {
    const { headers } = await make.user({ username: 'collector' });
    const json = { 'content-type': 'application/json' };
    const next = async (table: string) =>
      (await sql<{ next: number }>(`SELECT last_value + 1 AS next FROM ${table}_id_seq`))[0]!.next;
    const collection = (id: number) => ({ type: 'collection', id, user_id: 1, title: 'Imported' });
    const sold: { id: number; amount: number }[] = [];
    const created: { id: number; title: string }[] = [];
    const sell = async (amount: number) => {
      const { status, body } = await send('POST', '/operator/purchases', {
        headers: { ...json, authorization: `Bearer ${OPERATOR_TOKEN}` },
        body: JSON.stringify({ game_id: 1, email: 'b@example.com', currency: 'USD', amount }),
      });
      expect([200, 503]).toContain(status);
      if (status === 200) sold.push({ id: (body as { purchase: { id: number } }).purchase.id, amount });
    };
    const create = async (title: string) => {
      const { status, body } = await send('POST', '/collections', {
        headers: { ...json, ...headers },
        body: JSON.stringify({ title }),
      });
      expect([200, 503]).toContain(status);
      if (status === 200) created.push({ id: (body as { collection: { id: number } }).collection.id, title });
    };
    // An ID that the service has assigned in the meantime belongs to another object.
    const accepted = async (lines: Line[], way: (lines: Line[]) => Promise<HttpResponse>) => {
      const { status, body } = await way(lines);
      if (status !== 200)
        for (const problem of (body as { errors: string[] }).errors)
          expect(problem).toMatch(/was created by this service for another (user|buyer or game)$/);
      return status === 200 ? lines.length : 0;
    };
    let imported = 0;
    for (let round = 0; round < 10; round++) {
      const [id, from] = [await next('collections'), await next('purchases')];
      const numbers = [0, 1, 2, 3, 4, 5];
      const counts = await Promise.all([
        ...numbers.map((n) => accepted([collection(id + n)], sendSmall)),
        accepted(
          numbers.map((n) => collection(id + 6 + n)),
          sendLarge,
        ),
        ...numbers.map(async (n) => (await accepted([purchase(from + n, { amount: 1 })], sendSmall)) && 0),
        ...numbers.map(async (n) => (await sell(1000 + 10 * round + n), 0)),
        ...numbers.map(async (n) => (await create(`Created ${round}-${n}`), 0)),
      ]);
      imported += counts.reduce((sum, count) => sum + count, 0);
    }
    expect(await sql('SELECT id, amount FROM purchases WHERE amount >= 1000 ORDER BY id')).toEqual(
      sold.toSorted((a, b) => a.id - b.id),
    );
    expect(await sql(`SELECT id, title FROM collections WHERE title <> 'Imported' ORDER BY id`)).toEqual(
      created.toSorted((a, b) => a.id - b.id),
    );
    expect(await sql(`SELECT count(*) AS count FROM collections WHERE title = 'Imported'`)).toEqual([
      { count: imported },
    ]);
    expect(await storedSales()).toEqual(await expectedSales());
  });

  // The order depends on which the server wakes up first.
  test.each([1, 2, 3, 4, 5])(
    'a sequence never moves back, even with concurrent changes, %i',
    async (round) => {
      const highest = round * 9_000_000;
      // The import waits here, after it has read the sequence.
      const { release } = await holdLocks('ALTER SEQUENCE users_id_seq CACHE 1');
      const far = sendSmall([user(highest)]);
      await untilBlocked();
      const near = importDirectly([user(highest - 5_000_000)]);
      await untilBlocked(2);
      await release();
      expect(await far).toMatchObject({ status: 200 });
      await near;
      const [made] = await sql<{ id: number }>(`INSERT INTO users (username) VALUES ('made') RETURNING id`);
      expect(made!.id).toBeGreaterThan(highest);
    },
  );
});

const holdGame = () => holdLocks('SELECT FROM games WHERE id = 1 FOR UPDATE');
const statuses = (responses: { status: number }[]) => [...new Set(responses.map(({ status }) => status))];

/** Sends an import on its own connection, without waiting. */
function begin(body: string): ClientRequest {
  const one = request(`${baseUrl()}/operator/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/x-ndjson' },
    agent: false,
  });
  one.on('error', () => undefined).end(body);
  return one;
}

describe('locks', () => {
  test('a large import and a small one that wait for each other both complete', async () => {
    const collection = { type: 'collection', id: 1, user_id: 1, title: 'One' };
    await importLines(collection);
    const large = await holdGame();
    const user = await holdUser();
    const small = sendSmall([{ ...collection, title: 'Two' }, otherUser, game(1, { title: 'Two' })]);
    await untilBlocked();
    // The large import waits first, so that a second later the server would cancel it and not the small one.
    const waiting = large.query('SELECT FROM collections WHERE id = 1 FOR UPDATE');
    await untilBlocked(2);
    await user.release();
    await waiting;
    await large.release();
    expect(await small).toMatchObject({ status: 200 });
  });

  test('small imports wait only briefly for a locked record, and for each other', async () => {
    const { release } = await holdGame();
    const ahead = [1, 2, 3, 4].map((id) => sendSmall([purchase(id)]));
    await untilBlocked(4);
    const behind = Array.from({ length: 8 }, (_, i) => sendSmall([purchase(i + 5)]));
    expect(statuses(await Promise.all([...ahead, ...behind]))).toEqual([503]);
    // The game is still locked.
    expect(await sendSmall([otherUser])).toMatchObject({ status: 200 });
    await release();
    await importLines(purchase(1));
    expect(await storedSales()).toEqual(await expectedSales());
  });

  test('a client that disconnects while its import waits has imported nothing', async () => {
    const { release } = await holdGame();
    const ahead = [1, 2, 3, 4].map((id) => sendSmall([purchase(id)]));
    await untilBlocked(4);
    const gone = begin(JSON.stringify(purchase(5)));
    const { queues } = theApp().get(ImportLimits) as unknown as { queues: { small: ConcurrencyLimit } };
    await until(() => queues.small.accepted === 5);
    // A client that closes its half of the connection may still read.
    gone.socket!.resetAndDestroy();
    await until(() => queues.small.accepted === 4);
    await release();
    expect(statuses(await Promise.all([...ahead, sendSmall([purchase(6)])]))).toEqual([200]);
    expect(await sql('SELECT id FROM purchases ORDER BY id')).toEqual([1, 2, 3, 4, 6].map((id) => ({ id })));
  });
});
