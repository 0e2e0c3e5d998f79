import {
  expectedSales,
  importLines,
  OPERATOR_TOKEN,
  sendLarge,
  sendSmall,
  storedSales,
  wrongAccounts,
  wrongBuyers,
} from '../support/importing';
import { game, purchase, user } from '../support/records';
import { holdLocks, untilBlocked } from '../support/locks';
import { Actor } from '../support/actor';
import { openApp, useStore } from '../support/app';
import { failure, type HttpResponse } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { operator, readPurchaseId, sellBundle } from '../support/selling';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

const bundle = { type: 'bundle', id: 1, user_id: 1, slug: 'b', title: 'B', game_ids: [1, 2, 3] };
let player: Actor;
let purchase_id: number;

const claim = (game_id = 1) => player.post('/bundles/1/claim-game', { game_id });
const refund = (id = purchase_id) => operator.postJson(`/operator/purchases/${id}/refund`, {});
const erase = () => operator.postJson('/operator/users/2/erase', {});
const keys = () =>
  sql<{ game_id: number; live: boolean }>(
    'SELECT game_id::int, revoked_at IS NULL AS live FROM download_keys ORDER BY id',
  );

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections, bundles CASCADE');
  await importLines(user(1), user(2), ...[1, 2, 3, 4].map((id) => game(id)), bundle);
  player = new Actor(2, 'user2', await make.key({ owner: { id: 2 } }));
  purchase_id = readPurchaseId(await sellBundle());
});

afterEach(async () => {
  expect(await storedSales()).toEqual(await expectedSales());
  expect(await wrongBuyers()).toEqual([]);
  expect(await wrongAccounts()).toEqual([]);
  // No key is for a game that its purchase doesn't have.
  expect(
    await sql(
      `SELECT k.id FROM download_keys k WHERE purchase_id IS NOT NULL AND NOT EXISTS (
         SELECT FROM purchase_games pg WHERE pg.purchase_id = k.purchase_id AND pg.game_id = k.game_id)`,
    ),
  ).toEqual([]);
});

const holdPurchase = () => holdLocks(`SELECT FROM purchases WHERE id = ${purchase_id} FOR UPDATE`);

describe('a claim that races a refund leaves no live key', () => {
  test('the claim fails if the refund is first', async () => {
    const { query, commit } = await holdPurchase();
    const response = claim();
    await untilBlocked();
    await query(`UPDATE purchases SET status = 'refunded' WHERE id = ${purchase_id}`);
    await commit();
    expect(await response).toEqual(failure(404, 'invalid bundle'));
    expect(await keys()).toEqual([]);
    // The accounting of this refund by hand.
    await sql(`UPDATE purchases SET status = 'complete' WHERE id = $1`, [purchase_id]);
  });

  test('the refund revokes the key if the claim is first', async () => {
    const { release } = await holdPurchase();
    const response = claim();
    await untilBlocked();
    const refunded = refund();
    await untilBlocked(2);
    await release();
    const { status } = await response;
    readPurchaseId(await refunded);
    expect([200, 404]).toContain(status);
    expect((await keys()).filter(({ live }) => live)).toEqual([]);
  });

  test('no order of claims and refunds leaves one', async () => {
    for (let round = 0; round < 5; round++) {
      purchase_id = readPurchaseId(await sellBundle());
      await Promise.all([claim(1), claim(2), refund(), claim(1), claim(3), claim(2)]);
      await refund(purchase_id);
      const live = await sql('SELECT FROM download_keys WHERE purchase_id = $1 AND revoked_at IS NULL', [
        purchase_id,
      ]);
      expect(live).toEqual([]);
    }
  });
});

test('a refund locks a game that an import added meanwhile in the order of IDs', async () => {
  await importLines({ ...bundle, id: 2, slug: 'c', game_ids: [2, 3] });
  const id = readPurchaseId(await sellBundle({ bundle_id: 2, amount: 0 }));
  const { query, commit } = await holdLocks(`SELECT FROM purchases WHERE id = ${id} FOR UPDATE`);
  const refunded = refund(id);
  await untilBlocked();
  await query(`INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
    SELECT purchase_id, 1, user_id, email, sold_at FROM purchase_games WHERE purchase_id = ${id} AND game_id = 2`);
  // The accounting of this game by hand.
  const first = await holdLocks(`UPDATE games SET purchases_count = purchases_count + 1 WHERE id = 1;
    UPDATE sales_periods SET purchases = purchases + 1 WHERE game_id = 1`);
  await commit();
  await untilBlocked();
  await sql('SELECT FROM games WHERE id IN (2, 3) FOR UPDATE NOWAIT');
  await first.commit();
  readPurchaseId(await refunded);
});

test('claims of several games and purchases at once create one key for each game', async () => {
  await sellBundle();
  const games = [1, 2, 3];
  // One client can run this many requests at a time. On a busy machine, further ones may wait for too long.
  const responses = await Promise.all(Array.from({ length: 15 }, (_, i) => claim(games[i % 3])));
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
  expect((await keys()).map(({ game_id }) => game_id).toSorted()).toEqual(games);
});

test('claims at two replicas at once create one key', async () => {
  const replica = await (await openApp({ OPERATOR_TOKEN })).getUrl();
  const { release } = await holdPurchase();
  const responses = [
    claim(),
    fetch(`${replica}/bundles/1/claim-game?game_id=1`, { method: 'POST', headers: player.headers }),
  ];
  await untilBlocked(2);
  await release();
  expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
  expect(await keys()).toEqual([{ game_id: 1, live: true }]);
});

test('a claim during an erasure leaves no key of the person', async () => {
  const { release } = await holdLocks('SELECT FROM users WHERE id = 2 FOR UPDATE');
  const response = claim();
  await untilBlocked();
  const erased = erase();
  await release();
  expect((await erased).status).toBe(200);
  expect([200, 401, 404]).toContain((await response).status);
  expect(await sql('SELECT FROM download_keys WHERE user_id = 2 OR account_id = 2')).toEqual([]);
  expect(await sql('SELECT FROM purchases WHERE user_id = 2')).toEqual([]);
});

test('a claim that waits for an erasure creates no key', async () => {
  const { query, commit } = await holdLocks('SELECT FROM users WHERE id = 2 FOR UPDATE');
  const response = claim();
  await untilBlocked();
  await query(`UPDATE users SET username = 'erased-2' WHERE id = 2`);
  await commit();
  expect((await response).status).toBe(404);
  expect(await keys()).toEqual([]);
});

describe('an import that changes the bundle', () => {
  test('either prevents a claim of a game that leaves the purchase, or finds the key', async () => {
    const { query, commit } = await holdPurchase();
    const response = claim(1);
    await untilBlocked();
    await query(`DELETE FROM purchase_games WHERE purchase_id = ${purchase_id} AND game_id = 1`);
    await query(`INSERT INTO purchase_games (purchase_id, game_id) VALUES (${purchase_id}, 4)`);
    await commit();
    expect(await response).toEqual(failure(404, 'invalid game'));
    expect(await keys()).toEqual([]);
    await sql(`INSERT INTO purchase_games (purchase_id, game_id) VALUES ($1, 1)`, [purchase_id]);
    await sql(`DELETE FROM purchase_games WHERE purchase_id = $1 AND game_id = 4`, [purchase_id]);
  });

  test.each([
    ['small', sendSmall],
    ['large', sendLarge],
  ])('gives a new game to every buyer, also to those of sales during a %s import', async (_, send) => {
    const more = { ...bundle, game_ids: [1, 2, 3, 4], extend: true };
    const [imported, ...sold] = await Promise.all([
      send([more]),
      ...Array.from({ length: 12 }, () => sellBundle()),
      ...Array.from({ length: 4 }, () => claim(2)),
    ]);
    expect((imported as HttpResponse).status).toBe(200);
    expect(sold.map(({ status }) => status)).toEqual(sold.map(() => 200));
    expect(
      await sql(
        `SELECT id FROM purchases p WHERE 4 <> (SELECT count(*) FROM purchase_games WHERE purchase_id = p.id)`,
      ),
    ).toEqual([]);
    expect((await claim(4)).status).toBe(200);
    expect((await keys()).map(({ game_id }) => game_id)).toEqual([2, 4]);
  });

  test('waits for a sale of the bundle, and a sale waits for it', async () => {
    const { query, commit } = await holdLocks('SELECT FROM bundles WHERE id = 1 FOR NO KEY UPDATE');
    const response = sellBundle();
    await untilBlocked();
    await query('UPDATE bundles SET version = version + 1, games_count = 4 WHERE id = 1');
    await query('INSERT INTO bundle_games (bundle_id, game_id, position) VALUES (1, 4, 4)');
    await commit();
    const id = readPurchaseId(await response);
    expect(await sql('SELECT FROM purchase_games WHERE purchase_id = $1', [id])).toHaveLength(4);
  });

  test('gives each game once beside another one that extends it at the same time', async () => {
    const record = (game_ids: number[]) => ({ ...bundle, game_ids, extend: true });
    const responses = await Promise.all([
      sendSmall([record([1, 2, 3, 4])]),
      sendSmall([record([4, 3, 2, 1])]),
      sendSmall([record([1, 2, 3, 4])]),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await sql('SELECT FROM purchase_games WHERE purchase_id = $1', [purchase_id])).toHaveLength(4);
    const [row] = await sql<{ games_count: number; listed: number }>(
      `SELECT games_count, (SELECT count(*)::int FROM bundle_games) AS listed FROM bundles`,
    );
    expect(row).toEqual({ games_count: 4, listed: 4 });
  });

  test('does not change a purchase that is refunded meanwhile', async () => {
    const { release } = await holdPurchase();
    const imported = sendLarge([{ ...bundle, game_ids: [1, 2, 3, 4], extend: true }]);
    await untilBlocked();
    const refunded = refund();
    await release();
    expect((await imported).status).toBe(200);
    expect((await refunded).status).toBe(200);
    expect(await sql('SELECT FROM game_earnings')).toEqual([]);
  });
});

test('a killed session leaves no claim behind, and the next one succeeds', async () => {
  const { release } = await holdPurchase();
  const response = claim();
  await untilBlocked();
  await sql(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  expect((await response).status).toBe(503);
  await release();
  expect(await keys()).toEqual([]);
  expect((await claim()).status).toBe(200);
  expect(await keys()).toEqual([{ game_id: 1, live: true }]);
});

test('a purchase that loses the game while another one is the newest gives the key of the other', async () => {
  const newest = readPurchaseId(await sellBundle());
  const { query, commit } = await holdLocks(`SELECT FROM purchases WHERE id = ${newest} FOR UPDATE`);
  const response = claim(1);
  await untilBlocked();
  await query(`UPDATE purchases SET status = 'failed' WHERE id = ${newest}`);
  await commit();
  expect((await response).body).toMatchObject({ download_key: { purchase_id } });
  await sql(`UPDATE purchases SET status = 'complete' WHERE id = $1`, [newest]);
});

test('purchases of one game are sold beside those of bundles', async () => {
  const responses = await Promise.all([
    ...Array.from({ length: 5 }, () => sellBundle()),
    ...Array.from({ length: 5 }, () => sellBundle({ bundle_id: undefined, game_id: 2 })),
    sendSmall([purchase(900, { game_id: [1, 3] })]),
  ]);
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
});
