import { Client } from 'pg';
import {
  describeImports,
  expectedSales,
  importDirectly,
  importLines,
  OPERATOR_TOKEN,
  importErrors,
  sendImport,
  storedSales,
} from '../support/importing';
import { game, purchase, user, bundle } from '../support/records';
import { Actor } from '../support/actor';
import { databaseUrl, useStore } from '../support/app';
import { failure, ok } from '../support/http';
import { holdLocks } from '../support/locks';
import { make } from '../support/make';
import { explainPlan } from '../support/plans';
import { sql } from '../support/sql';
import { operator, readPurchaseId, sellBundle } from '../support/selling';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

/** A purchase of the bundle 1 by the user 2. */
const sale = (id: number, fields: object = {}) => {
  const { game_id: _, ...record } = purchase(id, { bundle_id: 1, user_id: 2, amount: 1000 });
  return { ...record, ...fields };
};

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections, bundles CASCADE');
  await importLines(user(1), user(2), ...[1, 2, 3, 4, 5].map((id) => game(id)));
});

afterEach(async () => expect(await storedSales()).toEqual(await expectedSales()));

const stored = async (id = 1) => {
  const [row] = await sql<Record<string, unknown>>(
    `SELECT b.*, ARRAY(SELECT game_id::int FROM bundle_games WHERE bundle_id = b.id ORDER BY position) AS game_ids,
       ARRAY(SELECT position FROM bundle_games WHERE bundle_id = b.id ORDER BY position) AS positions
     FROM bundles b WHERE id = $1`,
    [id],
  );
  return row;
};
const readPurchasedGameIds = async (purchase_id: number) =>
  (
    await sql<{ game_id: number }>(
      'SELECT game_id::int FROM purchase_games WHERE purchase_id = $1 ORDER BY game_id',
      [purchase_id],
    )
  ).map(({ game_id }) => game_id);

describeImports('bundles', () => {
  test('are stored in their order, and a repeated import changes nothing', async () => {
    const record = bundle(1, {
      title: ' Rain ',
      cover_url: 'https://images.example.com/b.png',
      min_price: 500,
      created_at: '2025-01-02T03:04:05Z',
      updated_at: '2025-01-03T03:04:05Z',
    });
    expect(await importLines(record)).toEqual(['bundles 1 new, 0 changed, 0 unchanged']);
    const row = await stored();
    expect(row).toMatchObject({
      title: 'Rain',
      slug: 'bundle-1',
      min_price: 500,
      games_count: 3,
      version: 1,
      game_ids: [3, 1, 2],
      positions: [1, 2, 3],
    });
    expect(await importLines(record)).toEqual(['bundles 0 new, 0 changed, 1 unchanged']);
    expect(await stored()).toEqual(row);
  });

  test('rise in version whenever the games or their order change, and only then', async () => {
    await importLines(bundle(1));
    const versionAfter = async (fields: object) => {
      expect(await importLines({ type: 'bundle', id: 1, ...fields })).toHaveLength(1);
      const { version, games_count, game_ids, positions } = (await stored())!;
      expect(positions).toEqual((game_ids as number[]).map((_, i) => i + 1));
      return { version, games_count, game_ids };
    };
    expect(await versionAfter({ title: 'Other' })).toEqual({
      version: 1,
      games_count: 3,
      game_ids: [3, 1, 2],
    });
    expect(await versionAfter({ game_ids: [1, 3, 2] })).toMatchObject({ version: 2, game_ids: [1, 3, 2] });
    expect(await versionAfter({ game_ids: [1, 3, 2] })).toMatchObject({ version: 2 });
    expect(await versionAfter({ game_ids: [4, 2, 5, 3] })).toEqual({
      version: 3,
      games_count: 4,
      game_ids: [4, 2, 5, 3],
    });
    expect(await versionAfter({ game_ids: [5] })).toMatchObject({ version: 4, games_count: 1 });
    expect(await versionAfter({ extend: true })).toMatchObject({ version: 4 });
  });

  test('are rejected with a problem for each mistake', async () => {
    expect(
      await importErrors(
        bundle(1, { game_ids: [] }),
        bundle(2, { game_ids: [1, 1] }),
        bundle(3, { game_ids: 'x' }),
        bundle(4, { game_ids: Array.from({ length: 10_001 }, (_, i) => i + 1) }),
        bundle(5, { title: 'x'.repeat(201) }),
        bundle(6, { slug: 'a b', min_price: -1 }),
        { type: 'bundle', id: 7, title: 'New' },
      ),
    ).toEqual([
      'line 1: bundle 1: game_ids must not be empty',
      'line 2: bundle 2: game_ids[1] is in the list twice',
      'line 3: bundle 3: game_ids must be a list',
      'line 4: bundle 4: game_ids must have at most 10000 ids',
      'line 5: bundle 5: title must be at most 200 characters',
      'line 6: bundle 6: slug must consist of letters, digits, _, . and -',
      expect.stringMatching(/^line 6: bundle 6: min_price must/),
      'line 7: bundle 7: game_ids is required',
      'line 7: bundle 7: slug is required',
      'line 7: bundle 7: user_id is required',
    ]);
    expect(await importErrors(bundle(1, { game_ids: [1, 9], user_id: 8 }))).toEqual([
      'line 1: bundle 1: user 8 does not exist',
      'line 1: bundle 1: game 9 does not exist',
    ]);
  });

  test('are deleted unless they have purchases, and keep their games and owner from being deleted', async () => {
    await importLines(bundle(1), bundle(2), sale(1));
    const deleted = (type: string, id: number) => ({ type, id, deleted: true });
    expect(await importErrors(deleted('bundle', 1))).toEqual([
      'line 1: bundle 1: has 1 purchase: keep it, or delete those first',
    ]);
    expect(await importErrors(deleted('game', 3))).toEqual([
      'line 1: game 3: has 1 purchase and 2 bundles: make the game private instead, or delete those first',
    ]);
    expect(await importLines(deleted('bundle', 2), deleted('bundle', 3))).toEqual([
      'bundles 0 new, 0 changed, 1 unchanged, 1 deleted',
    ]);
    expect(await stored(2)).toBeUndefined();
    expect(await importErrors(sale(2, { bundle_id: 2 }), deleted('bundle', 2))).toEqual([
      'line 1: purchase 2: bundle 2 does not exist',
    ]);
    // The game leaves the bundle in the same stream.
    await importLines(bundle(3, { game_ids: [4, 5] }));
    await importLines(bundle(3, { game_ids: [5] }), deleted('game', 4));
    expect(await stored(3)).toMatchObject({ game_ids: [5], version: 2 });
  });
});

describeImports('a purchase of a bundle', () => {
  test('has the games of the bundle at that time, in any order of records', async () => {
    expect(await importLines(sale(1), bundle(1), sale(2, { with_key: true, amount: 1001 }))).toEqual([
      'bundles 1 new, 0 changed, 0 unchanged',
      'purchases 2 new, 0 changed, 0 unchanged',
    ]);
    expect(await sql('SELECT id, purchase_type, bundle_id FROM purchases ORDER BY id')).toEqual([
      { id: 1, purchase_type: 'bundle', bundle_id: 1 },
      { id: 2, purchase_type: 'bundle', bundle_id: 1 },
    ]);
    expect(await readPurchasedGameIds(1)).toEqual([1, 2, 3]);
    expect(await sql('SELECT game_id FROM download_keys WHERE purchase_id = 1')).toEqual([]);
    expect(await sql('SELECT game_id FROM download_keys WHERE purchase_id = 2')).toHaveLength(3);
    expect(await sql('SELECT amount FROM game_earnings WHERE game_id = 1')).toEqual([{ amount: 334 + 334 }]);

    await importLines({ type: 'bundle', id: 1, game_ids: [1, 2, 3, 4] });
    expect(await importLines(sale(1), sale(2, { with_key: true, amount: 1001 }))).toEqual([
      'purchases 0 new, 0 changed, 2 unchanged',
    ]);
    expect(await readPurchasedGameIds(1)).toEqual([1, 2, 3]);
    await importLines(sale(3));
    expect(await readPurchasedGameIds(3)).toEqual([1, 2, 3, 4]);
  });

  test('can be partial, or named by its reference', async () => {
    await importLines(bundle(1), bundle(2, { game_ids: [4] }), sale(1));
    expect(await importLines({ type: 'purchase', id: 1, amount: 700 })).toEqual([
      'purchases 0 new, 1 changed, 0 unchanged',
    ]);
    expect(await readPurchasedGameIds(1)).toEqual([1, 2, 3]);
    const { id: _, ...unnumbered } = sale(0, { reference: 'order-1' });
    await importLines(unnumbered, { ...unnumbered, reference: 'order-2' });
    expect(await importLines({ ...unnumbered, amount: 5 })).toEqual([
      'purchases 0 new, 1 changed, 0 unchanged',
    ]);
    // Another bundle, and back to a single game.
    await importLines({ type: 'purchase', id: 1, bundle_id: 2 });
    expect(await readPurchasedGameIds(1)).toEqual([4]);
    await importLines({ type: 'purchase', id: 1, bundle_id: null, game_id: 5, purchase_type: 'game' });
    expect(await readPurchasedGameIds(1)).toEqual([5]);
    expect(await sql('SELECT bundle_id FROM purchases WHERE id = 1')).toEqual([{ bundle_id: null }]);
  });

  test('is rejected with a problem for each mistake', async () => {
    await importLines(bundle(1));
    expect(
      await importErrors(
        sale(1, { game_id: 1 }),
        sale(2, { purchase_type: 'game' }),
        sale(3, { bundle_id: 9 }),
        sale(4, { bundle_id: undefined }),
      ),
    ).toEqual([
      'line 1: purchase 1: exactly one of game_id, bundle_id is required',
      'line 2: purchase 2: purchase_type must be bundle when bundle_id is sent',
      'line 3: purchase 3: bundle 9 does not exist',
      'line 4: purchase 4: game_id is required',
    ]);
  });

  test('that the service created is not changed to another bundle', async () => {
    await importLines(bundle(1), bundle(2, { game_ids: [3, 1, 2] }));
    const id = readPurchaseId(await sellBundle());
    await importLines({ type: 'bundle', id: 1, game_ids: [3, 1, 2, 4] });
    expect(await importLines(sale(id, { source: 'store' }))).toEqual([
      'purchases 0 new, 0 changed, 1 unchanged',
    ]);
    expect(await importErrors(sale(id, { bundle_id: 2 }))).toEqual([
      `line 1: purchase ${id}: was created by this service for another buyer or game`,
    ]);
  });
});

describeImports('a game that is added later', () => {
  test('is given to earlier buyers only with extend', async () => {
    await importLines(
      bundle(1),
      bundle(2),
      sale(1),
      sale(2, { status: 'refunded' }),
      sale(3, { status: 'pending' }),
      sale(4, { bundle_id: 2 }),
    );
    const sold = readPurchaseId(await sellBundle());
    const more = bundle(1, { game_ids: [4, 3, 1, 2] });
    expect(await importLines(more)).toEqual(['bundles 0 new, 1 changed, 0 unchanged']);
    expect(await readPurchasedGameIds(1)).toEqual([1, 2, 3]);
    expect(await importLines({ ...more, extend: true })).toEqual([
      'bundles 0 new, 0 changed, 1 unchanged',
      'purchases 0 new, 3 changed, 0 unchanged',
    ]);
    for (const id of [1, 3, sold]) expect(await readPurchasedGameIds(id)).toEqual([1, 2, 3, 4]);
    for (const id of [2, 4]) expect(await readPurchasedGameIds(id)).toEqual([1, 2, 3]);
    expect(await sql('SELECT amount FROM game_earnings WHERE game_id = 4')).toEqual([{ amount: 500 }]);
    expect(await importLines({ ...more, extend: true })).toEqual(['bundles 0 new, 0 changed, 1 unchanged']);
    expect(await sql('SELECT version FROM bundles WHERE id = 1')).toEqual([{ version: 2 }]);
    const key = await make.key({ owner: { id: 2 } });
    const player = new Actor(2, 'user2', key);
    expect(await player.get('/games/4/ownership')).toEqual(ok({ owns: true }));
    expect((await player.post('/bundles/1/claim-game', { game_id: 4 })).status).toBe(200);
  });

  test('is given to purchases of the same stream, too', async () => {
    await importLines(bundle(1), sale(1), sale(2), sale(3));
    const sold = readPurchaseId(await sellBundle());
    expect(
      await importLines(
        sale(1, { amount: 800 }),
        { type: 'purchase', id: 2, source: 'wallet' },
        sale(sold, { source: 'store' }),
        { type: 'bundle', id: 1, game_ids: [5, 3], extend: true },
        sale(9),
      ),
    ).toEqual(['bundles 0 new, 1 changed, 0 unchanged', 'purchases 1 new, 4 changed, 0 unchanged']);
    for (const id of [1, 2, 3, sold]) expect(await readPurchasedGameIds(id)).toEqual([1, 2, 3, 5]);
    expect(await readPurchasedGameIds(9)).toEqual([3, 5]);
  });

  test('stays with buyers when it leaves the bundle', async () => {
    await importLines(bundle(1), sale(1), bundle(1, { id: 2, game_ids: [1] }));
    await importLines(bundle(1, { game_ids: [1] }));
    const player = new Actor(2, 'user2', await make.key({ owner: { id: 2 } }));
    expect(await player.get('/games/3/ownership')).toEqual(ok({ owns: true }));
    expect(await player.post('/bundles/1/claim-game', { game_id: 3 })).toEqual(failure(404, 'invalid game'));
  });
});

describe('a sale of a bundle over HTTP', () => {
  beforeEach(() => importLines(bundle(1)));

  test('has its games, no keys, and the type bundle', async () => {
    const response = await sellBundle({ reference: 'order-1' });
    expect(response).toEqual(
      ok({
        purchase: expect.objectContaining({
          purchase_type: 'bundle',
          game_id: [1, 2, 3],
          price: '$10.00',
          reference: 'order-1',
        }),
        download_keys: [],
      }),
    );
    expect(await sql('SELECT bundle_id FROM purchases')).toEqual([{ bundle_id: 1 }]);
    const seller = new Actor(1, 'user1', await make.key({ owner: { id: 1 } }));
    const { body } = await seller.get('/games/2/purchases', { user_id: 2 });
    expect(body).toMatchObject({ purchases: [{ id: readPurchaseId(response), game_id: [1, 2, 3] }] });
  });

  test('is repeated with the same reference, even after a claim and a change of the bundle', async () => {
    const response = await sellBundle({ reference: 'order-1' });
    const player = new Actor(2, 'user2', await make.key({ owner: { id: 2 } }));
    expect((await player.post('/bundles/1/claim-game', { game_id: 3 })).status).toBe(200);
    await importLines({ type: 'bundle', id: 1, game_ids: [1, 4] });
    expect(await sellBundle({ reference: 'order-1' })).toEqual(response);
    await importLines(bundle(2));
    expect(await sellBundle({ reference: 'order-1', bundle_id: 2 })).toEqual(
      failure(409, 'reference `order-1` is another sale', 'bundle_id differs'),
    );
    expect(
      await sellBundle({ reference: 'order-1', bundle_id: undefined, game_id: [1, 2, 3] }),
    ).toMatchObject({
      status: 409,
    });
    expect(await sellBundle({ reference: 'order-1', bundle_id: 99 })).toMatchObject({ status: 409 });
  });

  test('is repeated while an import changes the bundle', async () => {
    const response = await sellBundle({ reference: 'order-1' });
    const { release } = await holdLocks('SELECT FROM bundles, users FOR UPDATE');
    expect(await sellBundle({ reference: 'order-1' })).toEqual(response);
    await release();
  });

  test('has keys if asked for', async () => {
    const { body } = await sellBundle({ with_key: true, reference: 'order-2' });
    expect((body as { download_keys: unknown[] }).download_keys).toHaveLength(3);
    expect(await sellBundle({ with_key: true, reference: 'order-2' })).toEqual(ok(body));
  });

  test('fails with an error for each mistake', async () => {
    expect(await sellBundle({ bundle_id: 9 })).toEqual(failure(404, 'invalid bundle'));
    expect(await sellBundle({ game_id: 1 })).toEqual(
      failure(400, 'exactly one of game_id, bundle_id is required'),
    );
    expect(await sellBundle({ bundle_id: undefined })).toEqual(failure(400, 'game_id is required'));
    expect(await sellBundle({ purchase_type: 'game' })).toEqual(
      failure(400, 'purchase_type must be bundle when bundle_id is sent'),
    );
  });

  test('is refunded with its shares', async () => {
    const id = readPurchaseId(await sellBundle());
    expect((await operator.postJson(`/operator/purchases/${id}/refund`, {})).status).toBe(200);
    expect(await sql('SELECT FROM game_earnings')).toEqual([]);
  });
});

test('a sale is counted in linear time, even if PostgreSQL expects one game for each purchase', async () => {
  const games = 500;
  await sql(
    `INSERT INTO games (id, user_id, slug, title)
     SELECT id, 1, 'g' || id, 'Game' FROM generate_series(100, ${99 + games}) AS id`,
  );
  await importLines(
    bundle(1, { game_ids: Array.from({ length: games }, (_, i) => i + 100) }),
    ...Array.from({ length: 500 }, (_, i) => purchase(i + 2)),
    sale(1),
  );
  const client = new Client({ connectionString: databaseUrl() });
  await client.connect();
  // Ends without COMMIT.
  await client.query('BEGIN');
  await client.query('ALTER TABLE purchase_games ALTER purchase_id SET (n_distinct = -1)');
  await client.query('ANALYZE purchase_games, games, purchases, sales_periods');
  // As the statement before it does.
  await client.query(`SELECT set_config('gamewharf.sold', '1', true)`);
  const { rows } = await explainPlan(client, 'sale_count', {});
  await client.end();
  expect(rows).toBeLessThan(100 * games);
});

test('an extension sends as many statements for many purchases as for two', async () => {
  const countStatements = async (...lines: object[]) => {
    let count = 0;
    await importDirectly(lines, {
      prepare: async (client) => {
        const query = client.query.bind(client);
        jest.spyOn(client, 'query').mockImplementation(((...given: Parameters<typeof query>) => {
          count++;
          return query(...given);
        }) as typeof query);
      },
    });
    return count;
  };
  await importLines(bundle(1), sale(1), sale(2));
  const few = await countStatements(bundle(1, { game_ids: [3, 1, 2, 4], extend: true }));
  await importLines(...Array.from({ length: 30 }, (_, i) => sale(i + 3)));
  const many = await countStatements(bundle(1, { game_ids: [3, 1, 2, 4, 5], extend: true }));
  expect(await readPurchasedGameIds(1)).toEqual([1, 2, 3, 4, 5]);
  expect(await readPurchasedGameIds(32)).toEqual([1, 2, 3, 4, 5]);
  expect(many).toBe(few);
});

test('a bundle of ten thousand games is stored, sold and extended', async () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => i + 100);
  await sql(
    `INSERT INTO games (id, user_id, slug, title) SELECT id, 1, 'g' || id, 'Game' FROM generate_series(100, 10099) AS id`,
  );
  await importLines(bundle(1, { game_ids: ids }));
  await importLines({
    type: 'purchase',
    id: 1,
    bundle_id: 1,
    email: 'buyer@example.com',
    source: 'store',
    currency: 'USD',
    amount: 1000,
    created_at: '2026-01-01T00:00:00Z',
  });
  expect((await sendImport([bundle(1, { game_ids: [...ids.slice(1), 1], extend: true })])).status).toBe(200);
  expect(await sql('SELECT count(*)::int AS games FROM purchase_games')).toEqual([{ games: 10_001 }]);
});
