import * as fc from 'fast-check';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { metric } from '../support/metric';
import {
  importLines,
  OPERATOR_TOKEN,
  storedSales,
  expectedSales,
  wrongAccounts,
  wrongBuyers,
} from '../support/importing';
import { purchase } from '../support/records';
import { blocked, untilBlocked, holdLocks } from '../support/locks';
import { type Actor } from '../support/actor';
import { baseUrl, logged, openApp, useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { withoutPooler } from '../support/run-if';
import { until } from '../support/time';
import { operator } from '../support/selling';

const PUBLIC_URL = 'https://api.shop.example';
useStore({ OPERATOR_TOKEN, PUBLIC_URL });

let owner: Actor;
let stranger: Actor;
let buyer: Actor;
let one: { id: number };
let other: { id: number };
let replica: NestExpressApplication;

beforeAll(async () => {
  owner = await make.user({ developer: true });
  stranger = await make.user();
  buyer = await make.user({
    emails: [
      { email: 'zoe@example.com', verified: true },
      { email: 'zz@example.com', verified: true },
      { email: 'old@example.com', verified: false },
    ],
  });
  one = await make.game({ owner });
  other = await make.game({ owner });
  replica = await openApp({ OPERATOR_TOKEN, PUBLIC_URL });
});

type Fields = Record<string, unknown>;
interface Sold {
  purchase: { id: number; status: string; reference: string | null } & Fields;
  download_keys: { id: number; game_id: number; key: string; url: string }[];
}

const order = (fields: Fields = {}): Fields => ({
  game_id: one.id,
  email: 'someone@example.com',
  currency: 'USD',
  amount: 499,
  ...fields,
});
const sell = (fields: Fields = {}, headers = {}) =>
  operator.postJson('/operator/purchases', order(fields), headers);
const refund = (id: number, fields: Fields = {}, headers = {}) =>
  operator.postJson(`/operator/purchases/${id}/refund`, fields, headers);

async function sold(fields: Fields = {}, headers = {}): Promise<Sold> {
  const { status, body } = await sell(fields, headers);
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as Sold;
}

const count = async (table: string) =>
  (await sql<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`))[0]!.count;

/** Runs requests that must not change anything. */
async function expectNoSale<T>(work: () => Promise<T>): Promise<T> {
  const all = async () => ({
    purchases: await count('purchases'),
    keys: await count('download_keys'),
    references: await count('purchase_references'),
    kept: await storedSales(),
  });
  const before = await all();
  const result = await work();
  expect(await all()).toEqual(before);
  return result;
}

const expectExact = async () => {
  expect(await storedSales()).toEqual(await expectedSales());
  expect(await wrongBuyers()).toEqual([]);
  expect(await wrongAccounts()).toEqual([]);
};

describe('rejects', () => {
  test('clients without an operator token, before it reads the body', () =>
    expectNoSale(async () => {
      const body = '{';
      const headers = { 'content-type': 'application/json' };
      for (const path of ['/operator/purchases', '/operator/purchases/x/refund']) {
        expect(await send('POST', path, { headers, body })).toMatchObject(
          failure(401, 'authentication required'),
        );
        for (const wrong of [owner.key, 'nonsense'])
          expect(
            await send('POST', path, { headers: { ...headers, authorization: `Bearer ${wrong}` }, body }),
          ).toMatchObject(failure(401, 'invalid token'));
      }
    }));

  test('a sale with missing fields, listing all of them', () =>
    expectNoSale(async () => {
      expect(await operator.postJson('/operator/purchases', {})).toEqual(
        failure(
          400,
          'game_id is required',
          'currency is required',
          'amount is required',
          'at least one of user_id, email is required',
        ),
      );
      expect(await operator.postJson('/operator/purchases', order({ email: null }))).toEqual(
        failure(400, 'at least one of user_id, email is required'),
      );
    }));

  const AMOUNT = 'amount must be between 0 and 9007199254740991';
  const CURRENCY = 'currency must be an ISO 4217 code such as USD';
  const TIME = 'created_at must be a timestamp such as 2013-03-03T23:02:14Z';
  test.each<[Fields, string]>([
    [{ amount: -1 }, AMOUNT],
    [{ amount: '9007199254740993' }, AMOUNT],
    [{ amount: '92233720368547758070' }, AMOUNT],
    [{ amount: 4.99 }, 'amount must be an integer'],
    [{ amount: '4.99' }, 'amount must be an integer'],
    [{ amount: true }, 'amount must be an integer'],
    [{ currency: 'usd' }, CURRENCY],
    [{ currency: 'QQQ' }, CURRENCY],
    [{ currency: '' }, 'currency must not be empty'],
    [{ game_id: 'one' }, 'game_id must be an integer'],
    [{ game_id: [] }, 'game_id must not be empty'],
    [{ 'game_id[]': '1' }, 'game_id must be one JSON array, such as [3,1,2]'],
    [{ game_id: [1, 1] }, 'game_id must not contain an id twice'],
    [{ game_id: '[1,"2"]' }, 'game_id must be a JSON array of integers'],
    [{ game_id: Array.from({ length: 501 }, (_, i) => i + 1) }, 'game_id must have at most 500 ids'],
    [{ user_id: 'me' }, 'user_id must be an integer'],
    [{ email: 'nobody' }, 'email must be an email address'],
    [{ email: 'bob @example.com' }, 'email must be an email address'],
    [{ email: `${'a'.repeat(250)}@example.com` }, 'email must be at most 254 characters'],
    [{ email: 'Nobody@erased.invalid' }, 'email is reserved for erased buyers'],
    [{ source: 'x'.repeat(51) }, 'source must be at most 50 characters'],
    [{ reference: 'x'.repeat(201) }, 'reference must be at most 200 characters'],
    [{ reference: '' }, 'reference must not be empty'],
    [{ reference: 'a\0b' }, 'reference must be valid Unicode text without NUL'],
    [{ reference: 7 }, 'reference must be a string'],
    [{ sale_rate: 101 }, 'sale_rate must be between 0 and 100'],
    [{ sale_rate: -0.5 }, 'sale_rate must be between 0 and 100'],
    [{ sale_rate: 'half' }, 'sale_rate must be a number'],
    [{ quantity: 0 }, 'quantity must be between 1 and 2147483647'],
    [{ quantity: '9007199254740993' }, 'quantity must be between 1 and 2147483647'],
    [{ donation: 'maybe' }, 'donation must be a boolean'],
    [{ with_key: 2 }, 'with_key must be a boolean'],
    [{ purchase_type: 'rent' }, 'purchase_type must be one of game, bundle, sub_product'],
    [{ game_id: [1, 2], purchase_type: 'game' }, 'purchase_type must be bundle when game_id is a list'],
    [{ created_at: '2026-02-29T00:00:00Z' }, TIME],
    [{ created_at: 'yesterday' }, TIME],
  ])('%j', (fields, problem) =>
    expectNoSale(async () => {
      expect(await sell(fields)).toEqual(failure(400, problem));
    }),
  );

  test('a missing game or account, in this order', () =>
    expectNoSale(async () => {
      const none = [0, 2 ** 40, '9007199254740993'];
      for (const id of none) {
        expect(await sell({ game_id: id, user_id: id })).toEqual(failure(404, 'invalid game'));
        expect(await sell({ game_id: [one.id, 2 ** 40] })).toEqual(failure(404, 'invalid game'));
        expect(await sell({ user_id: id })).toEqual(failure(404, 'invalid user'));
      }
    }));

  test('an account without an email address, and an email address verified by another account', () =>
    expectNoSale(async () => {
      expect(await sell({ user_id: stranger.id, email: undefined })).toEqual(
        failure(400, 'email is required, as the user has verified no address'),
      );
      expect(await sell({ user_id: stranger.id, email: 'ZOE@example.com' })).toEqual(
        failure(400, 'email is verified by another user'),
      );
    }));

  test('a sale whose earnings would exceed the range of a number', async () => {
    const rich = await make.game({ owner });
    await sold({ game_id: rich.id, amount: Number.MAX_SAFE_INTEGER, currency: 'CHF' });
    await expectNoSale(async () => {
      expect(await sell({ game_id: [rich.id, one.id], amount: 2, currency: 'CHF' })).toEqual(
        failure(400, 'amount would bring the earnings of a game above 9007199254740991'),
      );
    });
  });

  test('a refund of a missing purchase', () =>
    expectNoSale(async () => {
      for (const id of [0, 2 ** 40, '9223372036854775807'])
        expect(await refund(id as number)).toEqual(failure(404, 'invalid purchase'));
      expect(await refund('x' as never)).toEqual(failure(400, 'purchase_id must be an integer'));
      expect(await refund(1, { keep_keys: 'some' })).toEqual(failure(400, 'keep_keys must be a boolean'));
    }));
});

describe('sells', () => {
  test('a game with its key, visible to buyer and developer at once', async () => {
    const sale = await sold({ email: 'First@example.com', reference: 'order 1' });
    const { purchase, download_keys } = sale;
    expect(purchase).toEqual({
      id: purchase.id,
      donation: false,
      email: 'First@example.com',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
      source: 'store',
      currency: 'USD',
      price: '$4.99',
      sale_rate: 0,
      quantity: 1,
      status: 'complete',
      purchase_type: 'game',
      game_id: one.id,
      reference: 'order 1',
    });
    expect(download_keys).toEqual([
      {
        id: expect.any(Number) as number,
        game_id: one.id,
        key: expect.stringMatching(/^gwdl_[\w-]{24}$/) as string,
        url: `${PUBLIC_URL}/download/${download_keys[0]!.key}`,
      },
    ]);
    const { reference: _, ...shown } = purchase;
    expect(await owner.get(`/games/${one.id}/purchases`, { email: 'first@example.com' })).toEqual(
      ok({ purchases: [shown] }),
    );
    const [key] = download_keys;
    expect(await owner.get(`/games/${one.id}/download_keys`, { download_key: key!.key })).toMatchObject(
      ok({ download_key: { id: key!.id } }),
    );
    expect(await owner.get(`/games/${one.id}/download_keys`, { email: 'FIRST@example.com' })).toMatchObject(
      ok({ download_key: { id: key!.id, key: key!.key } }),
    );
    await expectExact();
  });

  test('a form and JSON are accepted, and a verified email address finds the account', async () => {
    const { status, body } = await send('POST', '/operator/purchases', {
      headers: {
        authorization: `Bearer ${OPERATOR_TOKEN}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({
        game_id: `[${one.id}]`,
        user_id: String(buyer.id),
        currency: 'JPY',
        amount: '500',
        source: 'card',
        sale_rate: '12.5',
        quantity: '2',
        created_at: '2026-03-03T23:02:14.5+02:00',
      }).toString(),
    });
    expect({ status, body }).toMatchObject(
      ok({
        purchase: {
          email: 'zoe@example.com',
          game_id: [one.id],
          price: '¥500',
          source: 'card',
          sale_rate: 12.5,
          quantity: 2,
          created_at: '2026-03-03T21:02:14Z',
          reference: null,
        },
      }),
    );
    const { purchase, download_keys } = body as Sold;
    // The other replica sees it, too.
    for (const url of [baseUrl(), await replica.getUrl()]) {
      const ask = (path: string) =>
        fetch(url + path, { headers: buyer.headers }).then((response) => response.json());
      expect(await ask(`/games/${one.id}/ownership`)).toEqual({ owns: true });
      expect(await ask('/profile/owned-keys')).toMatchObject({
        owned_keys: [{ id: download_keys[0]!.id, purchase_id: purchase.id }],
      });
    }
    expect(await owner.get(`/games/${one.id}/download_keys`, { user_id: buyer.id })).toMatchObject(
      ok({ download_key: { owner: { id: buyer.id } } }),
    );
  });

  test('a bundle with a key per game and its amount split', async () => {
    const [low, high] = [await make.game({ owner }), await make.game({ owner })];
    const { purchase, download_keys } = await sold({ game_id: [high.id, low.id], amount: 501 });
    expect(purchase).toMatchObject({ purchase_type: 'bundle', game_id: [low.id, high.id], price: '$5.01' });
    expect(download_keys.map(({ game_id }) => game_id)).toEqual([low.id, high.id]);
    const kept = await storedSales();
    expect(kept.filter(({ id }) => id === low.id || id === high.id)).toMatchObject([
      { id: low.id, purchases_count: 1, earnings: { USD: 251 } },
      { id: high.id, purchases_count: 1, earnings: { USD: 250 } },
    ]);
    expect(await sold({ game_id: [low.id], purchase_type: 'bundle' })).toMatchObject({
      purchase: { purchase_type: 'bundle', game_id: [low.id] },
    });
    await expectExact();
  });

  test('donations without a key, free games with one, or according to with_key', async () => {
    expect((await sold({ donation: true })).download_keys).toEqual([]);
    expect((await sold({ donation: true, with_key: true })).download_keys).toHaveLength(1);
    expect((await sold({ amount: 0, with_key: false })).download_keys).toEqual([]);
    expect((await sold({ amount: 0 })).download_keys).toHaveLength(1);
    await expectExact();
  });

  test('a key belongs to the account, even if the sale has a different email address', async () => {
    const { download_keys } = await sold({ user_id: stranger.id, email: 'gift@example.com' });
    expect(
      await owner.get(`/games/${one.id}/download_keys`, { download_key: download_keys[0]!.key }),
    ).toMatchObject(ok({ download_key: { owner: { id: stranger.id } } }));
  });

  test('the owner is the account of the sale, or else the one that verified the email address', async () => {
    const cases: [Fields, Actor | undefined][] = [
      [{ user_id: buyer.id, email: 'Zoe@example.com' }, buyer],
      [{ user_id: stranger.id, email: 'old@example.com' }, stranger],
      [{ email: 'zoe@example.com' }, buyer],
      [{ email: 'old@example.com' }, undefined],
    ];
    for (const [fields, account] of cases) {
      const { purchase, download_keys } = await sold(fields);
      expect(purchase.email).toBe(fields.email);
      const { body } = await owner.get(`/games/${one.id}/download_keys`, {
        download_key: download_keys[0]!.key,
      });
      expect((body as { download_key: { owner?: { id: number } } }).download_key.owner?.id).toBe(account?.id);
    }
    await expectExact();
  });

  test('IDs never collide with those of concurrent imports', async () => {
    const { purchase: before } = await sold();
    await importLines(
      purchase(before.id + 1, { game_id: one.id }),
      purchase(before.id + 3, { game_id: one.id }),
    );
    const ids = [(await sold()).purchase.id, (await sold()).purchase.id];
    expect(ids.every((id) => id > before.id + 3)).toBe(true);
    // An ID that was taken between the lookup and the sale.
    const [{ next }] = (await sql(`SELECT last_value + 1 AS next FROM purchases_id_seq`)) as [
      { next: number },
    ];
    await sql(
      `INSERT INTO purchases (id, email, source, currency, amount) VALUES ($1, 'x@example.com', 'card', 'USD', 1)`,
      [next],
    );
    expect((await sold()).purchase.id).toBe(next + 1);
    await expectExact();
  });
});

test('spaces around the email address are trimmed', async () => {
  for (const email of [' bob@example.com', 'bob@example.com\n'])
    expect((await sold({ email })).purchase.email).toBe('bob@example.com');
});

describe('once', () => {
  test('a repeated reference returns the same response and keys', async () => {
    const fields = {
      reference: 'again',
      game_id: [other.id, one.id],
      created_at: '2026-03-03T23:02:14.9999999Z',
    };
    const first = await sold(fields);
    const keyless = { reference: 'keyless', with_key: false };
    const second = await sold(keyless);
    await expectNoSale(async () => {
      expect(await sold(fields)).toEqual(first);
      expect(await sold({ ...fields, game_id: [one.id, other.id] })).toEqual(first);
      expect(await sold(keyless)).toEqual(second);
      expect(await sold({ ...fields, email: 'SOMEONE@example.com' })).toEqual(first);
      // Neither is checked once the sale exists.
      await sql(`INSERT INTO user_emails VALUES ($1, 'someone@example.com', true)`, [stranger.id]);
      expect(await sold(fields)).toEqual(first);
      await sql(`DELETE FROM user_emails WHERE email = 'someone@example.com'`);
    });
  });

  test('a repeated reference with other values is a conflict that names them', async () => {
    const fields = { reference: 'mine', user_id: buyer.id };
    const { purchase } = await sold(fields);
    const aSecondLater = new Date(Date.parse(purchase.created_at as string) + 1000).toISOString();
    const another = 'reference `mine` is another sale';
    await expectNoSale(async () => {
      const changes: [Fields, ...string[]][] = [
        [{ amount: 500 }, 'amount'],
        [{ currency: 'EUR', amount: 1, source: 'card' }, 'currency', 'amount', 'source'],
        [{ game_id: other.id }, 'game_id'],
        [{ game_id: [one.id] }, 'purchase_type'],
        // Compared before missing records are looked up.
        [{ game_id: 2 ** 40 }, 'game_id'],
        [{ user_id: 2 ** 40 }, 'user_id'],
        [{ user_id: undefined }, 'user_id'],
        [{ email: 'else@example.com' }, 'email'],
        [{ sale_rate: 5, quantity: 2 }, 'sale_rate', 'quantity'],
        [{ donation: true }, 'donation', 'with_key'],
        [{ with_key: false }, 'with_key'],
        [{ created_at: '2013-03-03T23:02:14Z' }, 'created_at'],
        [{ created_at: aSecondLater }, 'created_at'],
      ];
      for (const [change, ...names] of changes) {
        const { status, body } = await sell({ ...fields, ...change });
        const errors = names.map((name) => `${name} differs`);
        expect({ status, errors: (body as { errors: string[] }).errors.toSorted() }).toEqual({
          status: 409,
          errors: [another, ...errors].toSorted(),
        });
      }
    });
  });

  test('a repeated reference returns the sale of an erased buyer, too', async () => {
    const { id: user_id } = await make.user({ emails: [{ email: 'erased@example.com', verified: true }] });
    const fields = { reference: 'before the erasure', user_id, email: 'erased@example.com' };
    const { purchase, download_keys } = await sold(fields);
    expect(await operator.postJson(`/operator/users/${user_id}/erase`, {})).toMatchObject({ status: 200 });
    await expectNoSale(async () => {
      expect(await sold(fields)).toEqual({
        purchase: { ...purchase, email: 'nobody@erased.invalid' },
        download_keys,
      });
      expect((await sell({ ...fields, amount: 500 })).body).toEqual({
        errors: ['reference `before the erasure` is another sale', 'amount differs'],
      });
    });
  });

  test('a repeated reference returns a sale without keys as it was, after an import has added some', async () => {
    const fields = { reference: 'keys came later', with_key: false, game_id: [one.id, other.id] };
    const first = await sold(fields);
    await importLines({ type: 'purchase', reference: fields.reference, with_key: true });
    await expectNoSale(async () => {
      expect(await sold(fields)).toEqual(first);
      expect((await sold({ ...fields, with_key: true })).download_keys).toHaveLength(2);
    });
  });

  test('concurrent requests to two replicas create one sale', async () => {
    const urls = [baseUrl(), await replica.getUrl()];
    for (const reference of ['race 1', 'race 2', 'race 3']) {
      const before = await count('purchases');
      const responses = await Promise.all(
        Array.from({ length: 12 }, async (_, i) => {
          const response = await fetch(`${urls[i % 2]}/operator/purchases`, {
            method: 'POST',
            headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
            body: JSON.stringify(order({ reference, game_id: [one.id, other.id] })),
          });
          return { status: response.status, body: await response.text() };
        }),
      );
      expect(responses[0]!.status).toBe(200);
      expect(responses).toEqual(responses.map(() => responses[0]));
      expect(await count('purchases')).toBe(before + 1);
    }
    await expectExact();
  });

  test('a repeated Idempotency-Key returns the same response, with or without a reference', async () => {
    const key = { 'idempotency-key': 'sale 1' };
    const first = await sold({}, key);
    await expectNoSale(async () => {
      expect(await sold({}, key)).toEqual(first);
      expect(await sell({ amount: 1 }, key)).toEqual(
        failure(400, 'Idempotency-Key was used with other parameters'),
      );
    });
    // The account that has verified the email address changes.
    const now = [{ user_id: buyer.id, email: 'moved@example.com' }, { 'idempotency-key': 'sale 2' }] as const;
    const second = await sold(...now);
    await sql(`INSERT INTO user_emails VALUES ($1, 'moved@example.com', true)`, [stranger.id]);
    await expectNoSale(async () => {
      expect((await sell(now[0])).status).toBe(400);
      expect(await sold(...now)).toEqual(second);
      expect((await sell({ ...now[0], amount: 1 }, now[1])).status).toBe(400);
    });
    await sql(`DELETE FROM user_emails WHERE email = 'moved@example.com'`);
    const taking = { 'idempotency-key': 'refund 1' };
    const response = await refund(first.purchase.id, {}, taking);
    expect(response).toMatchObject(ok({ purchase: { status: 'refunded' } }));
    expect(await refund(first.purchase.id, {}, taking)).toEqual(response);
    await expectExact();
  });

  test('an Idempotency-Key returns an earlier sale with the same reference', async () => {
    const used = failure(400, 'Idempotency-Key was used with other parameters');
    const idempotencyHeader = (key: string) => ({ 'idempotency-key': key });
    const before = { reference: 'sold before the key' };
    const first = await sold(before);
    await sold({}, idempotencyHeader('of another sale'));
    await expectNoSale(async () => {
      expect(await sell(before, idempotencyHeader('of another sale'))).toEqual(used);
      expect((await sell({ ...before, amount: 1 }, idempotencyHeader('repeats'))).status).toBe(409);
      for (let i = 0; i < 2; i++) expect(await sold(before, idempotencyHeader('repeats'))).toEqual(first);
      expect(await sell({ reference: 'new with a used key' }, idempotencyHeader('repeats'))).toEqual(used);
      expect(await sell({ ...before, amount: 1 }, idempotencyHeader('repeats'))).toEqual(used);
    });
  });
});

describe('refunds', () => {
  test('a sale with its keys, and returns the same response again', async () => {
    const sale = await sold({ reference: 'regret', user_id: buyer.id });
    const { id } = sale.purchase;
    const refunded = ok({ purchase: { ...sale.purchase, status: 'refunded' } });
    expect(await refund(id)).toEqual(refunded);
    await expectNoSale(async () => {
      expect(await refund(id)).toEqual(refunded);
      expect(await refund(id, { keep_keys: true })).toEqual(refunded);
    });
    expect(
      await owner.get(`/games/${one.id}/download_keys`, { download_key: sale.download_keys[0]!.key }),
    ).toEqual(failure(404, 'invalid download key'));
    const { body } = await owner.get(`/games/${one.id}/purchases`, { user_id: buyer.id });
    expect((body as { purchases: { id: number }[] }).purchases.map((found) => found.id)).not.toContain(id);
    // A retry of the sale comes too late to sell it again.
    expect(await sold({ reference: 'regret', user_id: buyer.id })).toEqual({
      purchase: { ...sale.purchase, status: 'refunded' },
      download_keys: sale.download_keys,
    });
    await expectExact();
  });

  test('a sale without its keys, and later the keys', async () => {
    const { purchase, download_keys } = await sold({ game_id: [one.id, other.id] });
    expect(await refund(purchase.id, { keep_keys: true })).toMatchObject(
      ok({ purchase: { status: 'refunded' } }),
    );
    const look = () => owner.get(`/games/${one.id}/download_keys`, { download_key: download_keys[0]!.key });
    expect((await look()).status).toBe(200);
    await refund(purchase.id);
    expect((await look()).status).toBe(404);
    await expectExact();
  });

  test('a sale with a key revoked earlier, whose time is kept, and no keys of other sales', async () => {
    const { purchase, download_keys } = await sold({ game_id: [one.id, other.id] });
    const rest = await sold({ game_id: one.id });
    const [before, now] = download_keys.map(({ id }) => id);
    await sql(`UPDATE download_keys SET revoked_at = '2024-05-06T07:08:09Z' WHERE id = $1`, [before]);
    await refund(purchase.id);
    const revoked = await sql<{ id: number; early: boolean | null }>(
      `SELECT id, revoked_at < '2025-01-01' AS early FROM download_keys WHERE id = ANY ($1) ORDER BY id`,
      [[before, now, rest.download_keys[0]!.id]],
    );
    expect(revoked.map(({ early }) => early)).toEqual([true, false, null]);
  });

  test('a free sale', async () => {
    const game = await make.game({ owner });
    const { purchase } = await sold({ game_id: game.id, amount: 0 });
    await refund(purchase.id);
    expect((await storedSales()).find(({ id }) => id === game.id)).toMatchObject({
      purchases_count: 0,
      earnings: null,
      periods: null,
    });
    await expectExact();
  });

  test('an incomplete sale, without subtracting what was never earned', async () => {
    await importLines(purchase(7001, { game_id: one.id, status: 'pending' }));
    expect(await refund(7001)).toMatchObject(
      ok({ purchase: { id: 7001, status: 'refunded', reference: null } }),
    );
    await expectExact();
  });

  test('any number of concurrent requests refund a sale once', async () => {
    const { purchase } = await sold({ game_id: [other.id, one.id], amount: 77 });
    const responses = await Promise.all(Array.from({ length: 8 }, () => refund(purchase.id)));
    expect(new Set(responses.map((response) => JSON.stringify(response))).size).toBe(1);
    await expectExact();
  });
});

describe('during concurrent writes', () => {
  /** Purchases that can be deleted. */
  async function refunded(fields: Fields = {}): Promise<number> {
    const { purchase } = await sold({ with_key: false, ...fields });
    await refund(purchase.id);
    return purchase.id;
  }

  test('a sale with the reference of a purchase being deleted is sold', async () => {
    const gone = await refunded({ reference: 'deleted' });
    const { query, commit } = await holdLocks('LOCK TABLE purchases');
    const response = sell({ reference: 'deleted' });
    await untilBlocked();
    await query(`DELETE FROM purchases WHERE id = ${gone}`);
    await commit();
    expect(await response).toMatchObject({ status: 200, body: { purchase: { reference: 'deleted' } } });
    await expectExact();
  });

  test('a purchase being deleted is not refunded', async () => {
    const gone = await refunded();
    const { commit } = await holdLocks(`DELETE FROM purchases WHERE id = ${gone}`);
    const response = refund(gone);
    await untilBlocked();
    await commit();
    expect(await response).toEqual(failure(404, 'invalid purchase'));
  });

  test('locks games in the order of their IDs', async () => {
    const games = [await make.game({ owner }), await make.game({ owner }), await make.game({ owner })];
    const [low, ...others] = games.map(({ id }) => id);
    const inOrder = async (ask: () => Promise<HttpResponse>) => {
      const { query, release } = await holdLocks(`SELECT FROM games WHERE id = ${low} FOR UPDATE`);
      const response = ask();
      await untilBlocked();
      await query(`SELECT FROM games WHERE id IN (${others.join()}) FOR UPDATE NOWAIT`);
      await release();
      expect((await response).status).toBe(200);
      return (await response).body as Sold;
    };
    const { purchase } = await inOrder(() => sell({ game_id: [...others, low] }));
    await inOrder(() => refund(purchase.id));
    await expectExact();
  });

  withoutPooler.test('sales that wait too long for a game are rejected, and not executed later', async () => {
    const { id } = await make.game({ owner });
    const { release } = await holdLocks(`SELECT FROM games WHERE id = ${id} FOR NO KEY UPDATE`);
    const responses = await Promise.all([1, 2, 3].map(() => sell({ game_id: id })));
    expect(responses).toEqual(responses.map(() => failure(503, 'service unavailable')));
    await until(async () => (await blocked()).length === 0);
    await release();
    expect(await sql('SELECT FROM purchase_games WHERE game_id = $1', [id])).toEqual([]);
  });

  describe('failures', () => {
    // The source of a purchase is the error code that the database raises, as often as the sequence has numbers left.
    beforeAll(() =>
      sql(`
        CREATE SEQUENCE failures;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF nextval('failures') < 1 THEN RAISE 'meanwhile' USING ERRCODE = NEW.source; END IF;
          RETURN NEW;
        END $$;
        CREATE TRIGGER fail BEFORE INSERT OR UPDATE OF status ON purchases FOR EACH ROW
          WHEN (NEW.source ~ '^[0-9P]{5}$') EXECUTE FUNCTION fail()`),
    );
    afterAll(() => sql('DROP FUNCTION fail CASCADE; DROP SEQUENCE failures'));
    const fail = (times: number) =>
      sql(`ALTER SEQUENCE failures MINVALUE -9 RESTART WITH ${1 - times}; SELECT`);
    const attempts = async (times: number) =>
      (await sql<{ made: number }>('SELECT (last_value + $1)::int AS made FROM failures', [times]))[0]!.made;

    test.each(['23503', '23505', '40P01'])('are retried up to five times after %s', async (source) => {
      await fail(4);
      const { purchase } = await sold({ source });
      expect(await attempts(4)).toBe(5);
      await expectNoSale(async () => {
        await fail(9);
        expect((await sell({ source })).status).toBe(source === '40P01' ? 503 : 500);
        expect(await attempts(9)).toBe(5);
        await fail(9);
        expect((await refund(purchase.id)).status).toBe(source === '40P01' ? 503 : 500);
        expect(await attempts(9)).toBe(5);
      });
      await fail(4);
      expect(await refund(purchase.id)).toMatchObject(ok({ purchase: { status: 'refunded' } }));
      await expectExact();
    });

    test.each(['23514', '57014'])('are not retried after %s', async (source) => {
      await fail(9);
      await expectNoSale(() => sell({ source }));
      expect(await attempts(9)).toBe(1);
    });
  });
});

/** Retries as the guide tells clients: 503 means that nothing was written, and when to retry. */
async function withRetries(ask: () => Promise<HttpResponse>): Promise<HttpResponse> {
  for (let attempt = 1; ; attempt++) {
    const response = await ask();
    if (response.status !== 503 || attempt === 100) return response;
  }
}

test('counts and earnings are exact after any concurrent mixture', async () => {
  const games = await Promise.all([1, 2, 3, 4].map(() => make.game({ owner })));
  const ids = games.map(({ id }) => id);
  const sale = fc.record({
    kind: fc.constant('sell' as const),
    game_id: fc.oneof(fc.constantFrom(...ids), fc.shuffledSubarray(ids, { minLength: 1 })),
    amount: fc.integer({ min: 0, max: 1000 }),
    currency: fc.constantFrom('USD', 'EUR'),
    reference: fc.constantFrom(undefined, 'mix 1', 'mix 2', 'mix 3'),
  });
  const taking = fc.record({ kind: fc.constant('refund' as const), nth: fc.integer({ min: 0, max: 30 }) });
  const known: number[] = [];
  const allowed = new Set([200, 409]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(sale, sale, taking), { minLength: 8, maxLength: 24 }),
      async (steps) => {
        const statuses = await Promise.all(
          steps.map(async (step) => {
            if (step.kind === 'refund') {
              if (known.length === 0) return 200;
              return (await withRetries(() => refund(known[step.nth % known.length]!))).status;
            }
            const { kind: _, ...fields } = step;
            const { status, body } = await withRetries(() => sell(fields));
            if (status === 200) known.push((body as Sold).purchase.id);
            return status;
          }),
        );
        expect(statuses.filter((status) => !allowed.has(status))).toEqual([]);
        expect(await storedSales()).toEqual(await expectedSales());
      },
    ),
    { numRuns: 12 },
  );
  const references = await sql(`SELECT reference FROM purchase_references WHERE reference LIKE 'mix %'`);
  expect(references.length).toBeLessThanOrEqual(3);
});

test('records an audit event without the person, and a metric, for each sale and refund', async () => {
  const all = `SELECT event, user_id, details, request_id FROM audit_events
    WHERE details->>'currency' = 'SEK' OR event IN ('purchase.created', 'purchase.refunded') AND NOT details ? 'currency' ORDER BY id`;
  const fields = {
    email: 'secret@example.com',
    currency: 'SEK',
    game_id: [one.id, other.id],
    reference: 'audited',
  };
  const { purchase } = await sold(fields, { 'x-request-id': 'sale-1' });
  await sold(fields);
  await Promise.all([1, 2, 3].map(() => refund(purchase.id)));
  await until(async () => (await sql(all)).length === 2);
  for (let i = 0; i < 2; i++) await sold({ currency: 'SEK' }, { 'idempotency-key': 'audited' });
  await until(async () => (await sql(all)).length === 3);
  const token = 'OPERATOR_TOKEN';
  expect((await sql(all)).slice(0, 2)).toEqual([
    {
      event: 'purchase.created',
      user_id: null,
      request_id: 'sale-1',
      details: { operator: token, currency: 'SEK', counts: { games: 2, keys: 2 } },
    },
    {
      event: 'purchase.refunded',
      user_id: null,
      request_id: expect.any(String) as string,
      details: { operator: token, currency: 'SEK', counts: { games: 2 } },
    },
  ]);
  expect(logged.join('')).not.toContain('secret@example.com');
  expect(await metric('gamewharf_sales_total', { currency: 'SEK' })).toMatchObject([{ value: 2 }]);
  expect(await metric('gamewharf_refunds_total', { currency: 'SEK' })).toMatchObject([{ value: 1 }]);
});
