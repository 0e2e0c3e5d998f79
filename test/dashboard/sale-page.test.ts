import { type Browser, signInBrowser } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, logged, openApp, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';

useStore({ OPERATOR_TOKEN, SELLERS_MAY_REFUND: 'true', STORE_NAME: 'Pier Games' });

const SALES = '/user/settings/sales';
const SEARCH = `${SALES}/search`;

let owner: Actor;
let stranger: Actor;
let browser: Browser;
let other: Browser;
let game: { id: number; title: string };
let foreign: { id: number };

beforeAll(async () => {
  const all = await actors();
  ({ owner, stranger } = all);
  game = await make.game({ owner, admins: [all.admin], title: 'Bright <Harbor>' });
  foreign = await make.game({ owner: stranger, title: 'Not yours' });
  browser = await signInBrowser(owner);
  other = await signInBrowser(stranger);
});

/** Sells through the operator API, so that totals and keys are as a checkout leaves them. */
async function sell(fields: object) {
  const response = await fetch(`${baseUrl()}/operator/purchases`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ game_id: game.id, currency: 'EUR', amount: 1234, ...fields }),
  });
  const { purchase, download_keys } = (await response.json()) as {
    purchase: { id: number };
    download_keys: { id: number; key: string }[];
  };
  return { id: purchase.id, keys: download_keys, path: `${SALES}/${purchase.id}` };
}

const state = async (id: number) =>
  (
    await sql<{ status: string; live: number; revenue: number }>(
      `SELECT status, (SELECT count(*) FROM download_keys WHERE purchase_id = p.id AND revoked_at IS NULL) AS live,
       (SELECT coalesce(sum(amount), 0) FROM sales_periods WHERE game_id = $2 AND unit = 'day') AS revenue
     FROM purchases p WHERE id = $1`,
      [id, game.id],
    )
  )[0];

describe('a sale', () => {
  test('shows its time, reference, buyer, games, and keys with their state', async () => {
    await make.user({ username: 'mara', emails: [{ email: 'mara@example.com', verified: true }] });
    const { path, id, keys } = await sell({
      email: 'Mara@example.com',
      reference: 'order <1>',
      created_at: '2024-03-03T01:02:03Z',
      sale_rate: 20,
      quantity: 2,
    });
    const statements = await recordStatements(() => browser.get(path));
    expect(statements.length).toBeLessThanOrEqual(5);
    expect(browser.words).toContain(`Sale ${id} Refund Status Complete Time 3 Mar 2024 , 01:02:03 UTC`);
    expect(browser.words).toContain(
      'Buyer Mara@example.com Copy Mara@example.com mara Price €12.34 20% off for 2 copies',
    );
    expect(browser.words).toContain('Source Store Reference order <1> Game Bright <Harbor>');
    expect(browser.words).toContain(`Key ${keys[0]!.id} Bright <Harbor> Not claimed 0`);
    expect(browser.page.text).toContain(`/download/${keys[0]!.key}">Key ${keys[0]!.id}</a>`);
    await sql('UPDATE download_keys SET user_id = $2, downloads = 3 WHERE id = $1', [keys[0]!.id, owner.id]);
    await browser.get(path);
    expect(browser.words).toContain(`Claimed by ${owner.username} 3`);
    // Earlier versions didn't record when.
    expect(browser.words).toContain(`Time not recorded ${owner.username} claimed key ${keys[0]!.id}`);
  });

  test('has a timeline of the sale, its keys and its refund', async () => {
    const { path, id, keys } = await sell({
      email: 'history@example.com',
      created_at: '2024-03-03T01:02:03Z',
    });
    const [key] = keys;
    const player = await signInBrowser(await make.user({ username: 'pat' }));
    await player.get('/user/games/redeem');
    await player.submit('/user/games/redeem', { key: key!.key });
    await sql(
      `UPDATE download_keys SET downloads = 2, last_download_at = '2030-01-02T00:00:00Z' WHERE id = $1`,
      [key!.id],
    );
    await browser.get(`${path}/refund`);
    await browser.submit(`${path}/refund`, {});
    await sql(`UPDATE refunds SET refunded_at = '2030-01-03T00:00:00Z' WHERE purchase_id = $1`, [id]);
    await browser.get(path);
    const today = new Date().getUTCFullYear();
    expect(browser.words.slice(browser.words.indexOf('Timeline'))).toMatch(
      new RegExp(
        '^Timeline 3 Mar 2024 , 01:02:03 UTC Sold for €12.34 \\(Store\\) ' +
          `\\d+ \\w+ ${today} , [\\d:]+ UTC pat claimed key ${key!.id} of Bright <Harbor> ` +
          `2 Jan 2030 , 00:00:00 UTC The last of 2 downloads with key ${key!.id} of Bright <Harbor> ` +
          `3 Jan 2030 , 00:00:00 UTC Refunded by ${owner.username} `,
      ),
    );
  });

  test('that the store refunded, or that was imported as refunded, says so', async () => {
    const { path, id } = await sell({ email: 'by-store@example.com' });
    const response = await fetch(`${baseUrl()}/operator/purchases/${id}/refund`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    expect(response.status).toBe(200);
    await browser.get(path);
    expect(browser.words).toContain('UTC Refunded by the store');
    const imported = await make.purchase({ games: [game], status: 'refunded' });
    await browser.get(`${SALES}/${imported.id}`);
    expect(browser.words).toContain('Time not recorded Refunded');
  });

  test("shows deliveries only of the user's own webhooks", async () => {
    const { path, id } = await sell({ email: 'hook@example.com' });
    await browser.get(path);
    expect(browser.words).toMatch(/None of your webhooks has been notified of this sale\./);
    for (const [host, user_id] of [
      ['mine', owner.id],
      ['theirs', stranger.id],
    ] as const)
      await sql(
        `WITH w AS (
           INSERT INTO webhooks (url, events, secret, user_id, game_id)
           VALUES ($1, '{purchase.completed}', '\\x00', $2, $3) RETURNING id)
         INSERT INTO webhook_attempts (webhook_id, message_id, event, subject_type, subject_id, data, happened_at, outcome, duration_ms)
         SELECT id, 'msg_1', 'purchase.completed', 'purchase', $4, '{}', now(), '500', 12 FROM w`,
        [`https://${host}.example/sales?token=secret`, user_id, game.id, id],
      );
    await sql(
      `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data, due_at)
       SELECT gen_random_uuid(), id, 'purchase.completed', $1, '{}', '2030-01-01T00:00:00Z' FROM webhooks`,
      [id],
    );
    await browser.get(path);
    expect(browser.words).toMatch(
      /Next attempt 1 Jan 2030 , 00:00:00 UTC purchase\.completed to mine\.example\/sales Pending/,
    );
    expect(browser.words).toMatch(/UTC purchase\.completed not delivered to mine\.example\/sales 500/);
    expect(browser.page.text).not.toMatch(/theirs|secret/);
    await sql('DELETE FROM webhooks');
  });

  test('returns 404 if the user cannot edit the game', async () => {
    const { path } = await sell({ email: 'hidden@example.com' });
    const pending = await make.purchase({ games: [game], status: 'pending' });
    for (const [who, url] of [
      [other, path],
      [other, `${path}/buyer`],
      [other, `${path}/refund`],
      [browser, `${SALES}/4000000`],
      [browser, `${SALES}/x`],
      [browser, `${SALES}/${pending.id}`],
    ] as const)
      expect({ url, status: (await who.get(url)).status }).toEqual({ url, status: 404 });
    await other.get('/user/games');
    const form_token = other.formFields('/logout').form_token!;
    expect((await other.post(`${path}/refund`, { form_token })).status).toBe(404);
  });

  test("shows only the user's own games and keys of a bundle", async () => {
    const { path, keys } = await sell({ game_id: [game.id, foreign.id], email: 'bundle@example.com' });
    await browser.get(path);
    expect(browser.words).toContain('And 1 of other sellers.');
    expect(browser.words).not.toContain('Not yours');
    expect(browser.words).toContain(`Key ${keys[0]!.id}`);
    expect(browser.words).not.toContain(`Key ${keys[1]!.id}`);
    expect(browser.words).toContain('contact Pier Games. The sale includes games that you can’t edit.');
    expect((await browser.get(`${path}/refund`)).status).toBe(403);
    const form_token = browser.formFields('/logout').form_token!;
    expect((await browser.post(`${path}/refund`, { form_token })).status).toBe(403);
  });

  test('names an imported bundle, without keys', async () => {
    const bundle = await make.bundle({ owner, games: [game, foreign], title: 'Pier & more' });
    const { path } = await sell({ game_id: undefined, bundle_id: bundle.id, email: 'bundle@example.com' });
    await browser.get(path);
    expect(browser.words).toContain('Bundle Pier & more');
    expect(browser.words).toContain('And 1 of other sellers.');
    expect(browser.words).toContain('No keys came with this sale.');
    for (const other of [`${path}/buyer`, '/user/settings/sales']) {
      await browser.get(other);
      expect(browser.words).toContain('in Pier & more');
    }
  });

  test('lists the first hundred keys, and says so if there are more', async () => {
    const note = 'Only the first 100 keys are listed.';
    const { path, id } = await sell({ email: 'crate@example.com' });
    const add = (count: number, purchase_id: number | null) =>
      sql(
        `INSERT INTO download_keys (key, game_id, purchase_id, email)
         SELECT gen_random_uuid()::text, $1, $2::bigint, CASE WHEN $2::bigint IS NULL THEN 'crate@example.com' END
         FROM generate_series(1, $3)`,
        [game.id, purchase_id, count],
      );
    const keysOn = async (url: string) => {
      await browser.get(url);
      return browser.words.match(/Key \d+ Bright/g)?.length;
    };
    await add(99, id);
    await add(100, null);
    for (const url of [path, `${path}/buyer`]) {
      expect(await keysOn(url)).toBe(100);
      expect(browser.words).not.toContain(note);
    }
    await add(1, id);
    await add(1, null);
    for (const url of [path, `${path}/buyer`]) {
      expect(await keysOn(url)).toBe(100);
      expect(browser.words).toContain(note);
    }
  });
});

describe('a refund', () => {
  test('needs confirmation, revokes the keys, is subtracted, recorded and sent to webhooks once', async () => {
    const earlier = logged.length;
    await sql(
      `INSERT INTO webhooks (url, events, secret) VALUES ('https://pier.example', '{purchase.refunded}', '\\x00')`,
    );
    const before = (await state(0))?.revenue;
    expect(before).toBeUndefined();
    const { path, id } = await sell({ email: 'refund@example.com', amount: 700 });
    const sold = await state(id);
    expect(sold).toMatchObject({ status: 'complete', live: 1 });
    await browser.get(`${path}/refund`);
    expect(browser.words).toContain('This marks the sale of €7.00 to refund@example.com as refunded');
    const { form_token, ...fields } = browser.formFields(`${path}/refund`);
    expect(fields).toEqual({});
    expect((await browser.post(`${path}/refund`, {})).status).toBe(403);
    expect((await browser.post(`${path}/refund`, { form_token: form_token! })).location).toBe(path);
    await browser.follow();
    expect(browser.words).toContain(`Sale ${id} was refunded.`);
    expect(browser.words).toContain('Revoked');
    expect(browser.words).not.toContain('Refund ');
    expect(await state(id)).toEqual({ status: 'refunded', live: 0, revenue: sold!.revenue - 700 });
    // A repeated form changes nothing, and says so; there is no form for another one.
    expect((await browser.post(`${path}/refund`, { form_token: form_token! })).status).toBe(303);
    await browser.follow();
    expect(browser.words).toContain(`Sale ${id} had already been refunded. Nothing was changed.`);
    expect((await browser.get(`${path}/refund`)).location).toBe(path);
    await browser.follow();
    expect(browser.words).toContain(`Sale ${id} had already been refunded.`);
    expect(browser.page.text).not.toContain(`${path}/refund`);
    expect(await state(id)).toMatchObject({ revenue: sold!.revenue - 700 });
    const events = logged.slice(earlier).filter((line) => line.includes('"purchase.refunded"'));
    expect(events).toHaveLength(1);
    expect(JSON.parse(events[0]!)).toMatchObject({
      user_id: owner.id,
      currency: 'EUR',
      counts: { games: 1 },
    });
    expect(logged.join('')).not.toContain('refund@example.com');
    expect(await sql('SELECT event FROM webhook_deliveries WHERE purchase_id = $1', [id])).toEqual([
      { event: 'purchase.refunded' },
    ]);
    await sql('DELETE FROM webhooks');
  });

  test('leaves the keys to the buyer if the seller chooses so', async () => {
    const { path, id } = await sell({ email: 'keeps@example.com' });
    await browser.get(`${path}/refund`);
    const { form_token } = browser.formFields(`${path}/refund`);
    await browser.submit(`${path}/refund`, { keep_keys: 'yes' });
    expect(await state(id)).toMatchObject({ status: 'refunded', live: 1 });
    // The form of another tab doesn't revoke them.
    await browser.post(`${path}/refund`, { form_token: form_token! });
    await browser.follow();
    expect(browser.words).toContain(`Sale ${id} had already been refunded. Nothing was changed.`);
    expect(await state(id)).toMatchObject({ status: 'refunded', live: 1 });
  });

  test('is reserved to the store without SELLERS_MAY_REFUND', async () => {
    const { path, id } = await sell({ email: 'store@example.com' });
    const replica = await openApp({ STORE_NAME: 'Pier Games' });
    const url = await replica.getUrl();
    const elsewhere = await signInBrowser(owner, () => url);
    await elsewhere.get(path);
    expect(elsewhere.words).toContain('To refund this sale, contact Pier Games.');
    expect(elsewhere.page.text).not.toContain(`${path}/refund`);
    const form_token = elsewhere.formFields('/logout').form_token!;
    expect((await elsewhere.post(`${path}/refund`, { form_token })).status).toBe(403);
    expect(await state(id)).toMatchObject({ status: 'complete' });
  });
});

describe('the page of a buyer', () => {
  test("has the totals, purchases and keys of an email address for the user's own games only", async () => {
    const second = await make.game({ owner, title: 'Second' });
    const first = await sell({ email: 'Twice@example.com', created_at: '2024-01-02T00:00:00Z' });
    const refunded = await make.purchase({
      games: [second],
      email: 'twice@example.com',
      status: 'refunded',
      created_at: '2024-02-03T00:00:00Z',
    });
    await make.purchase({ games: [foreign], email: 'twice@example.com', amount: 777 });
    const given = await make.downloadKey({ game: second, email: 'TWICE@example.com' });
    const hidden = await make.downloadKey({ game: foreign, email: 'twice@example.com' });
    await browser.get(first.path);
    await browser.get(/href="([^"]*\/buyer)"/.exec(browser.page.text)![1]!);
    expect(browser.words).toMatch(
      /^Twice@example\.com Orders 2 Refunds 1 Total €12\.34 First purchase 2 Jan 2024 Last purchase 3 Feb 2024 Purchases of your games/,
    );
    expect(browser.words).toContain(`Sale ${first.id}`);
    expect(browser.words).toContain(`${first.keys[0]!.id}: Not claimed`);
    expect(browser.words).toContain(`Sale ${refunded.id}`);
    expect(browser.words).toContain(
      `Keys without a purchase Keys Key Game State Downloads Key ${given.id} Second`,
    );
    expect(browser.words).not.toContain(`Key ${hidden.id}`);
    expect(browser.words).not.toMatch(/7\.77|Not yours/);
  });

  test('has everything of an account, with each of its email addresses and without one of them', async () => {
    const two = ['one@example.org', 'two@example.org'];
    const account = await make.user({
      username: 'two-mails',
      emails: two.map((email) => ({ email, verified: true })),
    });
    const sales = [
      await sell({ email: two[0], amount: 100 }),
      await sell({ email: two[1], amount: 200, currency: 'USD' }),
      await sell({ user_id: account.id, email: 'third@example.org', amount: 300 }),
    ];
    const stranger = await sell({ email: 'third@example.org', amount: 999 });
    for (const { path } of sales) {
      await browser.get(`${path}/buyer`);
      expect(browser.words).toMatch(/^two-mails Email address .* Orders 3 Refunds 0 Total €4\.00 \$2\.00 /);
      expect(browser.words).not.toContain(`Sale ${stranger.id}`);
    }
    await browser.get(`${stranger.path}/buyer`);
    expect(browser.words).toMatch(/^third@example\.org Orders 1 /);
  });
});

test('an erased buyer has no page, because all erased buyers share an email address', async () => {
  const { path, id } = await sell({ email: 'erase.me@example.com' });
  const response = await fetch(`${baseUrl()}/operator/people/erase`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    body: new URLSearchParams({ email: 'erase.me@example.com' }),
  });
  expect(response.status).toBe(200);
  await browser.get(path);
  expect(browser.words).toContain(`Sale ${id}`);
  expect(browser.words).toContain('Buyer Erased');
  expect(browser.page.text).not.toContain('/buyer"');
  expect((await browser.get(`${path}/buyer`)).status).toBe(404);
});

describe('the search', () => {
  let ada: Actor;
  let sales: { id: number; keys: { id: number }[]; path: string }[];

  beforeAll(async () => {
    ada = await make.user({
      username: 'Ada-Lark',
      display_name: 'A. Lovelace',
      emails: [{ email: 'lark@example.org', verified: true }],
    });
    sales = [
      await sell({ email: 'find.me@example.com', reference: 'Order-77' }),
      await sell({ email: 'find.more@example.com', created_at: '2024-01-01T00:00:00Z' }),
      await sell({ user_id: ada.id, created_at: '2024-01-02T00:00:00Z' }),
    ];
  });

  const find = async (term: string, who = browser) => {
    await who.get(SALES);
    await who.submit(SEARCH, { term });
    expect(who.page.status).toBe(303);
    return who.get(who.page.location!);
  };

  test.each([
    ['the start of an email address', 'FIND.ME@', 0],
    ['the end of an email address', 'ark@example.org', 2],
    ['the middle of an email address', 'nd.me', 0],
    ['a username', 'ada-lark', 2],
    ['a part of a username', 'da-L', 2],
    ['a part of a display name', 'lovela', 2],
    ['a verified email address', 'lark@example.org', 2],
    ['a reference', ' Order-77 ', 0],
  ])('finds a sale by %s', async (_, term, at) => {
    expect((await find(term)).location).toBe(sales[at]!.path);
    expect((await find(term, other)).status).toBe(200);
    expect(other.words).toContain('No sale of your games matches.');
  });

  test('finds a sale by its ID or a key', async () => {
    const key = await make.downloadKey({ game, purchase_id: sales[1]!.id });
    const [{ id }] = (await sql<{ id: number }>('SELECT max(id) + 1000 AS id FROM purchases')) as [
      { id: number },
    ];
    await sql('UPDATE download_keys SET id = $2 WHERE id = $1', [key.id, id]);
    expect((await find(String(id))).location).toBe(sales[1]!.path);
    expect((await find(String(id), other)).status).toBe(200);
    await find(String(sales[0]!.id));
    expect(browser.page.location ?? browser.words).toContain(String(sales[0]!.id));
  });

  test('lists several matches newest first, and logs no part of the term', async () => {
    await find('find.');
    expect(browser.page.status).toBe(200);
    expect(browser.words.indexOf(`Sale ${sales[0]!.id}`)).toBeLessThan(
      browser.words.indexOf(`Sale ${sales[1]!.id}`),
    );
    expect(browser.words).not.toContain(`Sale ${sales[2]!.id}`);
    expect(browser.page.text).toContain('value="find."');
    expect(logged.join('')).not.toContain('find.');
  });

  test('finds a sale by its key or the link of one, and a created key on its page', async () => {
    const [{ key }] = (await sql<{ key: string }>('SELECT key FROM download_keys WHERE id = $1', [
      sales[0]!.keys[0]!.id,
    ])) as [{ key: string }];
    for (const term of [key, ` https://pier.example/download/${key}`]) {
      expect((await find(term)).location).toBe(sales[0]!.path);
      expect((await find(term, other)).status).toBe(200);
      expect(other.words).toContain('No sale of your games matches.');
    }
    const created = await make.downloadKey({ game });
    const { location } = await find(created.key);
    expect(location).toBe(`/user/settings/games/${game.id}/keys?from=${created.id}&to=${created.id}`);
    await browser.follow();
    expect(browser.words).toContain(created.key);
    expect(browser.words).not.toContain(key);
  });

  test('has results at a URL that works again, only in the same session, and contains no part of the term', async () => {
    await browser.get(SALES);
    await browser.submit(SEARCH, { term: 'find.' });
    const url = browser.page.location!;
    for (let i = 0; i < 2; i++) {
      await browser.get(url);
      expect(browser.words).toContain(`Sale ${sales[1]!.id}`);
    }
    expect(Buffer.from(url.slice(SEARCH.length + 1), 'base64url').toString('latin1')).not.toContain('find');
    const again = await signInBrowser(owner);
    for (const [who, path] of [
      [again, url],
      [other, url],
      [browser, `${SEARCH}/x`],
      [browser, `${url}A`],
    ] as const)
      expect((await who.get(path)).location).toBe(SEARCH);
    expect((await fetch(`${baseUrl()}${url}`, { redirect: 'manual' })).status).toBe(303);
  });

  test.each(['find.me@example.org', '%', 'da', 'order', '0', '9007199254740993', "'", 'd%e', 'gwdl_'])(
    'finds nothing for %j',
    async (term) => {
      expect((await find(term)).status).toBe(200);
      expect(browser.words).toContain('No sale of your games matches.');
    },
  );

  test('lists at most fifty matches', async () => {
    const many = await make.game({ owner });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount) SELECT 'crowd' || i || '@example.com', 'card', 'USD', 100
         FROM generate_series(1, 60) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [many.id],
    );
    await find('crowd');
    expect(browser.page.text.match(/<tr>/g)).toHaveLength(51);
    expect(browser.words).toContain('Only the newest 50 sales are listed.');
  });

  test('is available to sellers only and needs the form’s token', async () => {
    const player = await signInBrowser(await make.user());
    await player.get('/user/games');
    expect(player.page.text).not.toContain(SEARCH);
    expect((await browser.post(SEARCH, { term: 'find' })).status).toBe(403);
    await browser.get(SEARCH);
    expect(browser.words).toMatch(/^Search Enter a part of an email address/);
  });
});
