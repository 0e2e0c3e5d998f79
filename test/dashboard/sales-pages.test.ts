import { Client } from 'pg';
import { COLUMNS, RANKED_GAMES, TOTALS } from '../../src/dashboard/sales/sales-report.service';
import { addToPeriods } from '../../src/purchases/earnings';
import type { Statement } from '../../src/platform/database/statement';
import { planOf } from '../support/plans';
import { type Browser, browserOf, cookieOf } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor, actors, baseUrl, databaseUrl, make, sql, theClock, useStore } from '../support/store';
import { statementsOf } from '../support/statements';

useStore({ RATE_LIMIT: 'off', OPERATOR_TOKEN });

const SALES = '/user/settings/sales';
const DAY = 86_400_000;
const dayAgo = (days: number) => new Date(theClock().now() - days * DAY).toISOString();

let owner: Actor;
let admin: Actor;
let stranger: Actor;
let game: { id: number; title: string };
let browser: Browser;

beforeAll(async () => {
  ({ owner, admin, stranger } = await actors());
  game = await make.game({ owner, admins: [admin], title: 'Bright <Harbour>' });
  browser = await browserOf(owner);
});

/** A day of sales, as whoever sells keeps it. */
const sold = (game_id: number, day: string, currency: string, purchases: number, amount: number) =>
  sql(
    addToPeriods(
      `(SELECT ${game_id} AS game_id, '${currency}' AS currency, '${day.slice(0, 10)}'::date AS day, ${purchases} AS purchases, ${amount} AS amount)`,
    ),
  );

describe('sales', () => {
  test('are the first page of somebody with games, and of nobody else', async () => {
    expect((await browser.get('/user/settings')).location).toBe(SALES);
    expect((await browser.get('/login')).location).toBe('/user/settings');
    await browser.get(SALES);
    expect(browser.page.text).toContain(`<a href="${SALES}"  aria-current="page">Sales</a>`);
    const helper = await browserOf(admin);
    expect((await helper.get('/user/settings')).location).toBe(SALES);
    const other = await browserOf(stranger);
    expect((await other.get('/user/settings')).location).toBe('/user/games');
    await other.follow();
    expect(other.page.text).not.toContain(SALES);
    await other.get(SALES);
    expect(other.words).toContain('You have no games yet.');
  });

  test('games of others are none', async () => {
    const other = await browserOf(stranger);
    for (const path of [
      `${SALES}?game=${game.id}`,
      `${SALES}/${game.id}/buyers`,
      `${SALES}/${game.id}/buyers.csv`,
      `${SALES}?game=x`,
      `${SALES}/x/buyers`,
      `${SALES}/4000000/buyers.csv`,
    ])
      expect({ path, status: (await other.get(path)).status }).toEqual({ path, status: 404 });
  });

  test('by currency, never added up; by day, week and month; of one game or all', async () => {
    const seller = await make.user();
    const [one, two] = [await make.game({ owner: seller }), await make.game({ owner: seller })];
    await sold(one.id, dayAgo(0), 'USD', 2, 1998);
    await sold(one.id, dayAgo(3), 'USD', 1, 999);
    await sold(one.id, dayAgo(3), 'JPY', 4, 2000);
    await sold(two.id, dayAgo(3), 'USD', 5, 100_000);
    await sold(two.id, dayAgo(200), 'USD', 1, 100);
    await sold(two.id, dayAgo(3000), 'USD', 1, 12_300);
    const page = await browserOf(seller);
    const ask = async (query: string) => {
      await page.get(`${SALES}?${query}`);
      return page.words;
    };
    expect(await ask('range=30d')).toContain('$1,029.97 USD · 8 sales ¥2,000 JPY · 4 sales');
    expect(await ask('range=30d&currency=JPY')).toContain('Revenue');
    expect(page.page.text).toContain('Sales: revenue in JPY and number of sales, by day');
    expect(columns()).toHaveLength(30);
    expect(columns().at(-1)).toMatch(/: ¥0, 0 sales$/);
    expect(columns().at(-4)).toMatch(/: ¥2,000, 4 sales$/);
    await ask('range=30d&currency=XXX');
    expect(columns().at(-1)).toMatch(/: \$19.98, 2 sales$/);
    expect(await ask('range=12m')).toContain('$1,030.97 USD · 9 sales');
    expect(columns()).toHaveLength(12);
    await ask('range=constructor');
    expect(columns()).toHaveLength(12);
    await ask('range=5y');
    expect(columns()).toHaveLength(60);
    expect(await ask('range=all&by=day')).toContain('$1,153.97 USD · 10 sales');
    expect(columns()[0]).toMatch(/^\w{3} \d{4}: \$123.00, 1 sale$/);
    // An axis of several years says which.
    await ask('range=5y&by=week');
    expect(page.page.text).toMatch(/<text[^>]*text-anchor="start">\s*\d+ \w{3} \d{4}\s*<\/text>/);
    await ask('range=90d&by=week');
    expect(page.page.text).toMatch(/<text[^>]*text-anchor="start">\s*\d+ \w{3}\s*<\/text>/);
    expect(columns().every((column) => column.startsWith('Week of '))).toBe(true);
    expect(
      new Set(columns().map((column) => new Date(column.slice(8).split(':')[0]!).getUTCDay())),
    ).toHaveProperty('size', 1);
    expect(await ask(`range=30d&game=${one.id}`)).toContain(`Sales of ${one.title}`);
    expect(page.words).toContain('$29.97 USD · 3 sales');
    expect(page.words).not.toContain(two.title);
    // Most earned first.
    await ask('range=30d');
    expect(page.words.indexOf(two.title)).toBeLessThan(page.words.indexOf(one.title));
    function columns(): string[] {
      return [...page.page.text.matchAll(/<g class="column"[^>]* aria-label="([^"]*)"/g)].map(
        ([, label]) => label!,
      );
    }
  });

  test('keys that came with purchases, and those of them that are claimed', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller });
    const { id: purchase_id } = await make.purchase({ games: [mine] });
    for (const fields of [{ purchase_id, user_id: seller.id }, { purchase_id }, { purchase_id }, {}])
      await make.downloadKey({ game: mine, ...fields });
    await make.downloadKey({ game: mine, purchase_id, revoked_at: dayAgo(0) });
    await make.downloadKey({ game: mine, purchase_id, created_at: dayAgo(50) });
    const page = await browserOf(seller);
    await page.get(`${SALES}?range=30d`);
    expect(page.words).toContain('33% 1 of 3');
    expect(page.words).toContain('Nothing was sold in this time.');
  });

  test('of more than 1,000 keys the newest are counted, and the page says so', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller });
    const { id } = await make.purchase({ games: [mine] });
    await sql(
      `INSERT INTO download_keys (key, game_id, purchase_id, user_id, created_at)
       SELECT 'many-' || i, $1, $2, CASE WHEN i <= 300 THEN $3::bigint END, now() - i * interval '1 minute' FROM generate_series(1, 1200) i`,
      [mine.id, id, seller.id],
    );
    const page = await browserOf(seller);
    await page.get(`${SALES}?range=30d`);
    expect(page.words).toContain('30% 300 of the newest 1,000');
  });

  test('are four statements; one more finds what was sold long ago, where nothing was of late', async () => {
    const seller = await make.user();
    const old = await make.game({ owner: seller });
    const page = await browserOf(seller);
    await sold(old.id, '2015-06-07', 'EUR', 1, 500);
    expect((await statementsOf(() => page.get(`${SALES}?range=12m`))).length).toBeLessThanOrEqual(4);
    expect(page.words).toContain('Nothing was sold in this time.');
    expect((await statementsOf(() => page.get(SALES))).length).toBeLessThanOrEqual(5);
    expect(page.page.text).toContain('Jun 2015: €5.00, 1 sale');
  });

  describe('of five years with 10,000 sales a day', () => {
    let seller: Actor;
    const [from, to] = [dayAgo(5 * 365).slice(0, 10), dayAgo(0).slice(0, 10)];

    beforeAll(async () => {
      seller = await make.user();
      for (let i = 0; i < 10; i++) await make.game({ owner: seller });
      await sql(
        addToPeriods(`(
          SELECT g.id AS game_id, c AS currency, current_date - d AS day, 200 AS purchases, 99900 AS amount
          FROM games g, generate_series(0, 1826) d, unnest('{USD,EUR,GBP,JPY,CAD}'::text[]) c WHERE g.user_id = ${seller.id})`),
      );
      await sql('VACUUM ANALYZE sales_periods');
    });

    test.each([
      ['totals', TOTALS as Statement, ['month'], 4000],
      ['totals of days', TOTALS as Statement, ['day'], 12_000],
      ['columns', COLUMNS as Statement, ['USD', 'month', 'month'], 1200],
      ['columns of days', COLUMNS as Statement, ['USD', 'day', 'week'], 8000],
      ['ranked games', RANKED_GAMES as Statement, ['USD', 'month', 0], 1200],
    ] as const)('%s are read from the own games alone', async (_, statement, more, most) => {
      const client = new Client({ connectionString: databaseUrl() });
      await client.connect();
      const values = [seller.id, null, from, to, ...more];
      const { scanned, pages } = await planOf(client, statement, values).finally(() => client.end());
      expect(scanned).toEqual([]);
      expect(pages).toBeLessThan(most);
    });

    test.each(['range=12m', 'range=12m&by=day', 'range=5y', 'range=5y&by=week', 'range=all'])(
      'the page shows %s',
      async (query) => {
        const page = await browserOf(seller);
        await page.get(`${SALES}?${query}`);
        expect(page.words).toContain('CAD ·');
      },
    );
  });
});

describe('buyers', () => {
  const path = () => `${SALES}/${game.id}/buyers`;
  let mara: Actor;
  let purchase: { id: number };

  beforeAll(async () => {
    mara = await make.user({ username: 'mara', emails: [{ email: 'mara@example.com', verified: true }] });
    purchase = await make.purchase({
      games: [game],
      email: 'Mara@example.com',
      currency: 'EUR',
      amount: 1234,
    });
    await make.downloadKey({ game, purchase_id: purchase.id, user_id: mara.id, downloads: 3 });
    await make.purchase({
      games: [game],
      status: 'refunded',
      email: '<b>@example.com',
      created_at: dayAgo(1),
    });
    await make.purchase({ games: [game], status: 'failed', email: 'failed@example.com' });
  });

  test('newest first, with purchase, key and status', async () => {
    await browser.get(path());
    expect(browser.words).toContain('Buyers of Bright <Harbour>');
    expect(browser.words).toContain(`Mara@example.com mara`);
    expect(browser.words).toContain(`No. ${purchase.id}, card €12.34 Complete Claimed by mara 3 downloads`);
    expect(browser.words).toContain('<b>@example.com');
    expect(browser.words).toContain('refunded no key');
    expect(browser.words).not.toContain('failed@example.com');
    const help = await browserOf(admin);
    expect((await help.get(path())).status).toBe(200);
    expect((await statementsOf(() => browser.get(path()))).length).toBeLessThanOrEqual(4);
  });

  test.each(['mara@EXAMPLE.com', ' Mara ', 'MARA'])('found by %j', async (find) => {
    await browser.get(`${path()}?find=${encodeURIComponent(find)}`);
    expect(browser.words).toContain('Mara@example.com');
    expect(browser.words).not.toContain('refunded');
  });

  test.each(['nobody', 'mara@example.org', '%', "'", 'stranger@example.com'])(
    'nobody is found by %j',
    async (find) => {
      await browser.get(`${path()}?find=${encodeURIComponent(find)}`);
      expect(browser.words).toContain('Nobody with exactly this address or user name has bought it.');
    },
  );

  test('page by page, whatever the address says', async () => {
    const many = await make.game({ owner });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, created_at)
         SELECT 'many' || i || '@example.com', 'card', 'USD', 100, timestamptz '2024-01-01' + i / 3 * interval '1 second'
         FROM generate_series(1, 120) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [many.id],
    );
    const seen: string[] = [];
    let next: string | undefined = `${SALES}/${many.id}/buyers`;
    for (let i = 0; next && i < 5; i++) {
      await browser.get(next);
      seen.push(...[...browser.page.text.matchAll(/many\d+@/g)].map(([text]) => text));
      next = /href="([^"]*after=[^"]*)">Older/.exec(browser.page.text)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toEqual(Array.from({ length: 120 }, (_, i) => `many${120 - i}@`));
    for (const after of ['x', '2024-13-01 00:00:00+00,1', "2024-01-01 00:00:00+00,1'", ''])
      expect(
        (await browser.get(`${SALES}/${many.id}/buyers?after=${encodeURIComponent(after)}`)).status,
      ).toBe(200);
  });

  test('as CSV: no formulas, quotes doubled, all of them', async () => {
    const shop = await make.game({ owner });
    const attacks = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1', '"=1"', 'a,b', 'plain'];
    attacks.push('a;=1', 'b; \t@c;-1', 'x\u001b[31m\u202ey');
    for (const [i, source] of attacks.entries())
      await make.purchase({ games: [shop], source, email: `e${i}@example.com`, created_at: dayAgo(i) });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, created_at)
         SELECT 'many' || i || '@example.com', 'card', 'KWD', i, timestamptz '2020-01-01' FROM generate_series(1, 340) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [shop.id],
    );
    const { status, headers } = await browser.get(`${SALES}/${shop.id}/buyers.csv`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(headers.get('content-disposition')).toBe(`attachment; filename="buyers-of-game-${shop.id}.csv"`);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
    // fetch() takes the byte order mark off.
    const [head, ...lines] = browser.page.text.split('\r\n').slice(0, -1);
    expect(head).toBe(
      'purchase,bought_at,email,user,currency,price,percent_off,quantity,type,donation,source,status,key,key_revoked,key_claimed_by,key_downloads',
    );
    expect(lines).toHaveLength(attacks.length + 340);
    const sources = lines
      .slice(0, attacks.length)
      .map((line) => /,false,(.*),complete,,,,$/s.exec(line)?.[1]);
    expect(sources).toEqual([
      "'=1+1",
      "'+1",
      "'-1",
      "'@SUM(A1)",
      "' =1",
      "' =1",
      "'＝1",
      '"""=1"""',
      '"a,b"',
      'plain',
      `"a;'=1"`,
      `"b;'  @c;'-1"`,
      'x [31m y',
    ]);
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(lines.at(-1)).toMatch(
      /^\d+,2020-01-01T00:00:00Z,many1@example.com,,KWD,0.001,0,1,game,false,card,complete,,,,$/,
    );
    await browser.get(`${path()}.csv?find=mara`);
    expect(browser.page.text.split('\r\n')[1]).toMatch(
      new RegExp(
        `^${purchase.id},.*,Mara@example.com,mara,EUR,12.34,0,1,game,false,card,complete,\\d+,false,mara,3$`,
      ),
    );
    expect(browser.page.text.split('\r\n')).toHaveLength(3);
  });

  test('the CSV begins with a byte order mark, and needs a session', async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${baseUrl()}${path()}.csv`, { headers, redirect: 'manual' });
    const bytes = Buffer.from(await (await ask(cookieOf(browser))).arrayBuffer());
    expect(bytes.subarray(0, 11).toString('latin1')).toBe('\xef\xbb\xbfpurchase');
    expect((await ask({})).status).toBe(303);
  });
});
