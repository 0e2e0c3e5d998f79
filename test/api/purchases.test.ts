import { useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';
import { statementsAfterCredential } from '../support/statements';
import { untilBlocked, holdLocks } from '../support/locks';

useStore({ RATE_LIMIT: 'off' });

const store = useGame();

let serial = 0;
const address = () => `buyer${++serial}@shop.example`;
const look = (selector: Record<string, unknown>, who = store.owner) =>
  who.get(`/games/${store.game.id}/purchases`, selector);
const none = ok({ purchases: [] });

async function listPurchaseIds(selector: Record<string, unknown>): Promise<number[]> {
  const { status, body } = await look(selector);
  expect(status).toBe(200);
  return (body as { purchases: { id: number }[] }).purchases.map(({ id }) => id);
}

test('returns all fields of a purchase', async () => {
  const email = address();
  const purchase = await make.purchase({
    games: [store.game],
    email: email.toUpperCase(),
    created_at: '2024-05-06T07:08:09.999Z',
    source: 'card',
    currency: 'EUR',
    amount: 1234,
    sale_rate: 12.5,
    quantity: 2,
  });
  expect(await look({ email })).toEqual(
    ok({
      purchases: [
        {
          id: purchase.id,
          donation: false,
          email: email.toUpperCase(),
          created_at: '2024-05-06T07:08:09Z',
          source: 'card',
          currency: 'EUR',
          price: '€12.34',
          sale_rate: 12.5,
          quantity: 2,
          status: 'complete',
          purchase_type: 'game',
          game_id: store.game.id,
        },
      ],
    }),
  );
  expect(await look({ email }, store.admin)).toEqual(await look({ email }));
});

test('lists all games of a bundle in ascending order, even a single one', async () => {
  const [email, alone] = [address(), address()];
  const others = [await make.game({ owner: store.developer }), await make.game({ owner: store.developer })];
  await make.purchase({
    games: [others[1]!, store.game, others[0]!],
    email,
    purchase_type: 'bundle',
    donation: true,
  });
  await make.purchase({ games: [store.game], email: alone, purchase_type: 'bundle' });
  expect((await look({ email })).body).toMatchObject({
    purchases: [
      {
        purchase_type: 'bundle',
        donation: true,
        game_id: [store.game.id, ...others.map(({ id }) => id)].toSorted((a, b) => a - b),
      },
    ],
  });
  expect((await look({ email: alone })).body).toMatchObject({ purchases: [{ game_id: [store.game.id] }] });
});

test('includes purchases of a sub-product of the game', async () => {
  const email = address();
  await make.purchase({ games: [store.game], email, purchase_type: 'sub_product' });
  expect((await look({ email })).body).toMatchObject({
    purchases: [{ purchase_type: 'sub_product', game_id: store.game.id }],
  });
});

test('lists only completed purchases of this game, newest first', async () => {
  const email = address();
  const at = '2024-01-01T00:00:00Z';
  const first = await make.purchase({ games: [store.game], email, created_at: at });
  const twin = await make.purchase({ games: [store.game], email, created_at: at });
  const latest = await make.purchase({ games: [store.game], email, created_at: '2025-01-01T00:00:00Z' });
  const earliest = await make.purchase({ games: [store.game], email, created_at: '2023-01-01T00:00:00Z' });
  for (const status of ['pending', 'failed', 'refunded'])
    await make.purchase({ games: [store.game], email, status });
  await make.purchase({ games: [await make.game({ owner: store.owner })], email });
  expect(await listPurchaseIds({ email })).toEqual([latest.id, twin.id, first.id, earliest.id]);
});

test('does not include claimed keys', async () => {
  const email = address();
  await make.downloadKey({ game: store.game, email, user_id: store.stranger.id });
  expect(await look({ email })).toEqual(none);
  expect(await look({ user_id: store.stranger.id })).toEqual(none);
});

test('finds by email all verified addresses of the account and its own purchases', async () => {
  const [one, two, unproven] = [address(), address(), address()];
  const user = await make.user({
    emails: [
      { email: one, verified: true },
      { email: two, verified: true },
      { email: unproven, verified: false },
    ],
  });
  const bought: Record<string, number> = {};
  for (const email of [one, two, unproven])
    bought[email] = (await make.purchase({ games: [store.game], email })).id;
  const signedIn = (await make.purchase({ games: [store.game], email: address(), user_id: user.id })).id;
  const linked = [bought[one], bought[two], signedIn].toSorted((a, b) => b! - a!);
  expect(await listPurchaseIds({ email: one })).toEqual(linked);
  expect(await listPurchaseIds({ email: two.toUpperCase() })).toEqual(linked);
  expect(await listPurchaseIds({ email: unproven })).toEqual([bought[unproven]]);
  expect(await listPurchaseIds({ user_id: user.id })).toEqual(linked);
});

test('distinguishes the Kelvin sign from k in an email address', async () => {
  const [kate, kelvin] = ['kate@shop.example', '\u212aate@shop.example'];
  const user = await make.user({ emails: [{ email: kate, verified: true }] });
  const { id } = await make.purchase({ games: [store.game], email: kelvin });
  const key = await make.downloadKey({ game: store.game, email: kelvin, purchase_id: id });
  expect(await look({ email: kate })).toEqual(none);
  expect(await look({ user_id: user.id })).toEqual(none);
  expect(await listPurchaseIds({ email: kelvin })).toEqual([id]);
  for (const selector of [{ email: kate }, { user_id: user.id }])
    expect(await store.owner.get(`/games/${store.game.id}/download_keys`, selector)).toEqual(
      failure(404, 'no download key found'),
    );
  expect(await store.owner.get(`/games/${store.game.id}/download_keys`, { email: kelvin })).toMatchObject({
    status: 200,
    body: { download_key: { id: key.id } },
  });
});

test('lists a purchase once if it matches in several ways', async () => {
  const email = address();
  const user = await make.user({ emails: [{ email, verified: true }] });
  const { id } = await make.purchase({ games: [store.game], email, user_id: user.id });
  expect(await listPurchaseIds({ email })).toEqual([id]);
  expect(await listPurchaseIds({ user_id: user.id })).toEqual([id]);
});

test('finds a purchase only by its new buyer after its buyer changes', async () => {
  const [before, after] = [address(), address()];
  const { id } = await make.purchase({ games: [store.game], email: before });
  await sql('UPDATE purchases SET email = $2, user_id = $3 WHERE id = $1', [
    id,
    after.toUpperCase(),
    store.stranger.id,
  ]);
  expect(await look({ email: before })).toEqual(none);
  expect(await listPurchaseIds({ email: after })).toEqual([id]);
  expect(await listPurchaseIds({ user_id: store.stranger.id })).toEqual([id]);
  await sql('UPDATE purchases SET user_id = NULL WHERE id = $1', [id]);
  expect(await look({ user_id: store.stranger.id })).toEqual(none);
});

test('finds a purchase whose games are added while its buyer changes', async () => {
  const [before, after] = [address(), address()];
  const { id } = await make.purchase({ games: [], email: before });
  const change = await holdLocks(`UPDATE purchases SET email = '${after}' WHERE id = ${id}`);
  const inserted = sql('INSERT INTO purchase_games (purchase_id, game_id) VALUES ($1, $2)', [
    id,
    store.game.id,
  ]);
  await untilBlocked();
  await change.commit();
  await inserted;
  expect(await look({ email: before })).toEqual(none);
  expect(await listPurchaseIds({ email: after })).toEqual([id]);
});

test('returns nothing for an unknown or similar email address', async () => {
  const email = address();
  await make.purchase({ games: [store.game], email });
  expect(await look({ email: address() })).toEqual(none);
  expect(await look({ email: '%' })).toEqual(none);
  expect(await look({ email: email.replace('buyer', 'buye_') })).toEqual(none);
  expect(await look({ email: 'x'.repeat(10_000) })).toEqual(none);
});

test('reads a space as an unescaped plus sign', async () => {
  const email = address().replace('@', '+a+b@');
  const { id } = await make.purchase({ games: [store.game], email });
  expect(await listPurchaseIds({ email: email.replaceAll('+', ' ') })).toEqual([id]);
  expect(await listPurchaseIds({ email })).toEqual([id]);
});

test.each(['0', '4000000', '2147483648', '9007199254740993', '9223372036854775807'])(
  'returns nothing for the user ID %s',
  async (user_id) => {
    await make.purchase({ games: [store.game], user_id: null });
    expect(await look({ user_id })).toEqual(none);
  },
);

test('returns the response for an unknown game to other users, byte for byte', async () => {
  const email = address();
  await make.purchase({ games: [store.game], email });
  const texts = new Set<string>();
  for (const [who, id] of [
    [store.developer, store.game.id],
    [store.stranger, store.game.id],
    [store.owner, 4_000_000],
    [store.owner, '9007199254740993'],
  ] as const) {
    const response = await send('GET', `/games/${id}/purchases?email=${email}`, { headers: who.headers });
    expect(response).toMatchObject(failure(404, 'invalid game'));
    texts.add(response.text);
  }
  expect(texts.size).toBe(1);
});

test('needs one statement', async () => {
  const email = address();
  for (let i = 0; i < 5; i++) await make.purchase({ games: [store.game], email, purchase_type: 'bundle' });
  const statements = await statementsAfterCredential(async () => {
    expect(await listPurchaseIds({ email })).toHaveLength(5);
    await look({ user_id: store.stranger.id });
  });
  expect(statements).toEqual(['purchases_by_email', 'purchases_by_user']);
});

const oneOf = failure(400, 'exactly one of email, user_id is required');
test.each<[string, HttpResponse]>([
  ['', oneOf],
  ['download_key=x', oneOf],
  ['email=a@b.c&user_id=1', oneOf],
  ['user_id=1&user_id=2', failure(400, 'user_id must be given once')],
  ['email=a&email=a', failure(400, 'email must be given once')],
  ['email[x]=1', failure(400, 'email must be a single value')],
  ['email[]=a', failure(400, 'email must be a single value')],
  ['user_id[gt]=0', failure(400, 'user_id must be a single value')],
  ['email=', failure(400, 'email must not be empty')],
  ['email=a%00b', failure(400, 'email must be valid Unicode text without NUL')],
  ['email=%ff', failure(400, 'email must be valid UTF-8 text')],
  ...['', 'abc', '1.5', '1e3', '0x10', '%2012', '%2B5', '%D9%A1', '%00', '99999999999999999999'].map(
    (id): [string, HttpResponse] => [`user_id=${id}`, failure(400, 'user_id must be an integer')],
  ),
  ['user_id=1&download_key=x', none],
])('?%s', async (query, expected) => {
  const { status, body } = await send('GET', `/games/${store.game.id}/purchases?${query}`, {
    headers: store.owner.headers,
  });
  expect({ status, body }).toEqual(expected);
});

test('does not read the body of a GET', async () => {
  expect(await look({ email: address() })).toEqual(none);
  const { status } = await send('POST', `/games/${store.game.id}/purchases`, {
    headers: { ...store.owner.headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'user_id=1',
  });
  expect(status).toBe(405);
});
