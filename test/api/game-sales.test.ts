import { useStore } from '../support/app';
import { failure, ok } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';

useStore({ RATE_LIMIT: 'off' });

const store = useGame();

const ask = (query: Record<string, unknown> = {}, who = store.owner) =>
  who.get(`/games/${store.game.id}/sales`, query);
async function listSaleIds(query: Record<string, unknown> = {}): Promise<number[]> {
  const { status, body } = await ask(query);
  expect(status).toBe(200);
  return (body as { sales: { id: number }[] }).sales.map(({ id }) => id);
}
const none = ok({ page: 1, per_page: 100, sales: [] });

test('requires an editor of the game and the scope for purchases', async () => {
  await make.purchase({ games: [store.game] });
  for (const who of [store.developer, store.stranger])
    expect(await ask({}, who)).toEqual(failure(404, 'invalid game'));
  expect(await ask({ page: 2 }, store.stranger)).toEqual(failure(404, 'invalid game'));
  expect(await store.owner.get('/games/4000000/sales')).toEqual(failure(404, 'invalid game'));
  expect(await ask({}, store.anonymous)).toEqual(failure(401, 'authentication required'));
  const looking = store.owner.with(await make.key({ owner: store.owner, scopes: ['game:view:ownership'] }));
  expect(await ask({}, looking)).toEqual(failure(403, 'api key does not permit `game:view:purchases`'));
  const selling = store.owner.with(await make.key({ owner: store.owner, scopes: ['game:view:purchases'] }));
  expect(await ask({}, selling)).toEqual(await ask({}, store.admin));
  expect((await ask({}, selling)).status).toBe(200);
});

test.each<[Record<string, unknown>, string]>([
  [{ page: 0 }, 'page must be between 1 and 1000000'],
  [{ page: 1_000_001 }, 'page must be between 1 and 1000000'],
  [{ per_page: 501 }, 'per_page must be between 1 and 500'],
  [{ per_page: 'x' }, 'per_page must be an integer'],
  ...['', 'yesterday', '2024-05-06', '1714979289', '2024-02-30T00:00:00Z', '2024-05-06T24:00:00Z'].map(
    (since): [Record<string, unknown>, string] => [
      { since },
      'since must be a timestamp such as 2013-03-03T23:02:14Z',
    ],
  ),
  [{ since: '0999-01-01T00:00:00Z' }, 'since must be in a year from 1000 to 2999'],
  [{ since: '2024-05-06T07:08:09' }, 'since must be a timestamp such as 2013-03-03T23:02:14Z'],
])('rejects %j', async (query, problem) => {
  expect(await ask(query)).toEqual(failure(400, problem));
});

test('still rejects a list of purchases without a selector', async () => {
  expect(await store.owner.get(`/games/${store.game.id}/purchases`)).toEqual(
    failure(400, 'exactly one of email, user_id is required'),
  );
});

test('returns a sale with its buyer, its key and the account that claimed it', async () => {
  const email = 'Mara@example.com';
  const buyer = await make.user({
    username: 'mara',
    display_name: 'Mara',
    emails: [{ email, verified: true }],
  });
  const friend = await make.user({ username: 'friend', developer: true });
  const purchase = await make.purchase({
    games: [store.game],
    email,
    created_at: '2024-05-06T07:08:09.999Z',
    currency: 'EUR',
    amount: 1234,
    quantity: 2,
  });
  const at = { purchase_id: purchase.id };
  await make.downloadKey({ game: store.game, ...at, created_at: '2024-05-06T07:08:09Z' });
  const key = await make.downloadKey({
    game: store.game,
    ...at,
    user_id: friend.id,
    downloads: 3,
    created_at: '2024-05-07T00:00:00Z',
  });
  await make.downloadKey({ game: await make.game({ owner: store.owner }), ...at });
  const user = (id: number, username: string, display_name: string, developer: boolean) => ({
    id,
    username,
    display_name,
    gamer: true,
    developer,
    press_user: false,
    url: `https://${username}.gamewharf.example`,
    cover_url: null,
  });
  expect(await ask()).toEqual(
    ok({
      page: 1,
      per_page: 100,
      sales: [
        {
          id: purchase.id,
          donation: false,
          email,
          created_at: '2024-05-06T07:08:09Z',
          source: 'card',
          currency: 'EUR',
          price: '€12.34',
          amount: 1234,
          sale_rate: 0,
          quantity: 2,
          status: 'complete',
          purchase_type: 'game',
          game_id: store.game.id,
          user: user(buyer.id, 'mara', 'Mara', false),
          download_key: {
            id: key.id,
            created_at: '2024-05-07T00:00:00Z',
            downloads: 3,
            revoked: false,
            claimed_by: user(friend.id, 'friend', 'friend', true),
          },
        },
      ],
    }),
  );
});

test('returns guests, revoked keys, bundles and refunds', async () => {
  const other = await make.game({ owner: store.developer });
  const guest = await make.purchase({
    games: [store.game],
    created_at: '2024-01-03T00:00:00Z',
    donation: true,
  });
  const bundle = await make.purchase({
    games: [other, store.game],
    purchase_type: 'bundle',
    created_at: '2024-01-02T00:00:00Z',
  });
  const refunded = await make.purchase({
    games: [store.game],
    status: 'refunded',
    created_at: '2024-01-01T00:00:00Z',
  });
  await make.downloadKey({ game: store.game, purchase_id: refunded.id, revoked_at: '2024-01-05T00:00:00Z' });
  expect((await ask()).body).toMatchObject({
    sales: [
      { id: guest.id, user: null, download_key: null, donation: true },
      { id: bundle.id, purchase_type: 'bundle', game_id: [store.game.id, other.id] },
      { id: refunded.id, status: 'refunded', download_key: { revoked: true, claimed_by: null } },
    ],
  });
});

test('lists a purchase only once it is paid', async () => {
  const purchase = await make.purchase({ games: [store.game], status: 'pending' });
  await make.purchase({ games: [store.game], status: 'failed' });
  await make.purchase({ games: [await make.game({ owner: store.owner })] });
  expect(await ask()).toEqual(none);
  await sql(`UPDATE purchases SET status = 'complete' WHERE id = $1`, [purchase.id]);
  expect(await listSaleIds()).toEqual([purchase.id]);
  await sql(`UPDATE purchases SET status = 'failed' WHERE id = $1`, [purchase.id]);
  expect(await ask()).toEqual(none);
});

test('lists sales newest first, by page, since a time', async () => {
  const at = '2024-01-01T00:00:00.5Z';
  const first = await make.purchase({ games: [store.game], created_at: at });
  const twin = await make.purchase({ games: [store.game], created_at: at });
  const latest = await make.purchase({ games: [store.game], created_at: '2025-01-01T00:00:00Z' });
  const earliest = await make.purchase({ games: [store.game], created_at: '2023-01-01T00:00:00Z' });
  const all = [latest.id, twin.id, first.id, earliest.id];
  expect(await listSaleIds()).toEqual(all);
  expect(await listSaleIds({ per_page: 3 })).toEqual(all.slice(0, 3));
  expect(await ask({ per_page: 3, page: 2 })).toMatchObject(ok({ page: 2, per_page: 3, sales: [{}] }));
  expect(await listSaleIds({ per_page: 3, page: 2 })).toEqual([earliest.id]);
  expect(await listSaleIds({ page: 1_000_000 })).toEqual([]);
  // The time in a response, sent back as `since`, skips no sale.
  expect(await listSaleIds({ since: '2024-01-01T00:00:00Z' })).toEqual(all.slice(0, 3));
  expect(await listSaleIds({ since: '2024-01-01T02:00:01+02:00' })).toEqual([latest.id]);
  expect(await listSaleIds({ since: '2023-12-31T22:00:00.25-02:00', per_page: 1, page: 3 })).toEqual([
    first.id,
  ]);
  await sql(`UPDATE purchases SET created_at = '2026-01-01' WHERE id = $1`, [first.id]);
  expect(await listSaleIds()).toEqual([first.id, latest.id, twin.id, earliest.id]);
});

test('returns a page of 500 in slices, and one that ends within a slice', async () => {
  await sql(
    `WITH made AS (
       INSERT INTO purchases (email, source, currency, amount, created_at)
       SELECT 'many@example.com', 'card', 'USD', i, timestamptz '2024-01-01' + i / 3 * interval '1 second'
       FROM generate_series(1, 730) i RETURNING id)
     INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
    [store.game.id],
  );
  const all = (
    await sql<{ id: number }>(
      'SELECT id FROM purchases JOIN purchase_games ON id = purchase_id WHERE game_id = $1 ORDER BY created_at DESC, id DESC',
      [store.game.id],
    )
  ).map(({ id }) => id);
  expect(await listSaleIds({ per_page: 500 })).toEqual(all.slice(0, 500));
  expect(await listSaleIds({ per_page: 500, page: 2 })).toEqual(all.slice(500));
  expect(await listSaleIds({ per_page: 150, page: 2 })).toEqual(all.slice(150, 300));
  expect(await listSaleIds({ per_page: 100, page: 3 })).toEqual(all.slice(200, 300));
});
