import { Client } from 'pg';
import { CHART_COLUMNS, RANKED_GAMES, TOTALS } from '../../src/dashboard/sales/sales-report.service';
import { addToPeriods } from '../../src/purchases/earnings/earnings';
import type { Statement } from '../../src/platform/database/statement';
import { planOf } from '../support/plans';
import { type Browser, browserOf, cookieOf } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor, actors, baseUrl, databaseUrl, make, sql, theClock, useStore } from '../support/store';
import { statementsOf } from '../support/statements';

useStore({ RATE_LIMIT: 'off', OPERATOR_TOKEN });

const SALES = '/user/settings/sales';
const GAMES = '/user/settings/games';
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

/** Adds a day of sales as the service records it. */
const sold = (game_id: number, day: string, currency: string, purchases: number, amount: number) =>
  sql(
    addToPeriods(
      `(SELECT ${game_id} AS game_id, '${currency}' AS currency, '${day.slice(0, 10)}'::date AS day, ${purchases} AS purchases, ${amount} AS amount)`,
    ),
  );

describe('the Sales page', () => {
  test('is in the navigation of users with games', async () => {
    expect((await browser.get('/login')).location).toBe('/user/settings');
    await browser.get(SALES);
    expect(browser.page.text).toContain(`<a href="${SALES}"  aria-current="page">Sales</a>`);
    const helper = await browserOf(admin);
    await helper.get('/user/games');
    expect(helper.page.text).toContain(SALES);
    const other = await browserOf(stranger);
    expect((await other.get('/user/settings')).location).toBe('/user/games');
    await other.follow();
    expect(other.page.text).not.toContain(SALES);
    await other.get(SALES);
    expect(other.words).toContain('You have no games yet.');
  });

  test("returns 404 for other users' games", async () => {
    const other = await browserOf(stranger);
    for (const path of [
      `${SALES}?game=${game.id}`,
      `${SALES}/figures.csv?of=time&game=${game.id}`,
      `${GAMES}/${game.id}/buyers`,
      `${GAMES}/${game.id}/buyers.csv`,
      `${SALES}?game=x`,
      `${GAMES}/x/buyers`,
      `${GAMES}/4000000/buyers.csv`,
    ])
      expect({ path, status: (await other.get(path)).status }).toEqual({ path, status: 404 });
  });

  const columnsOf = (page: Browser) =>
    [...page.page.text.matchAll(/<g class="column"[^>]* aria-label="([^"]*)"/g)].map(([, label]) => label!);
  const labelsOf = (page: Browser) =>
    [...page.page.text.matchAll(/<text[^>]* x="([\d.]+)%" y="338"/g)].map(([, x]) => Number(x));

  test('groups by currency, by day, week and month, for one game or all', async () => {
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
    expect(await ask('')).toContain(
      'Revenue $1,029.97 from $0.00 Sales 8 from 0 Refunds 0 no change Average order $128.75',
    );
    expect(page.words).toContain('USD · 8 sales JPY · 4 sales');
    await ask('currency=JPY');
    expect(page.page.text).toContain('Sales: revenue in JPY and number of sales, by day');
    expect(columnsOf(page)).toHaveLength(30);
    expect(columnsOf(page).at(-1)).toMatch(/: ¥0, 0 sales$/);
    expect(columnsOf(page).at(-4)).toMatch(/: ¥2,000, 4 sales$/);
    expect(page.words).toContain(`1 game without sales in JPY ${two.title}`);
    await ask('currency=XXX');
    expect(columnsOf(page).at(-1)).toMatch(/: \$19.98, 2 sales$/);
    expect(await ask('range=12m')).toContain('Revenue $1,030.97');
    expect(columnsOf(page)).toHaveLength(12);
    await ask('range=constructor');
    expect(columnsOf(page)).toHaveLength(30);
    await ask('range=5y');
    expect(columnsOf(page)).toHaveLength(60);
    expect(await ask('range=all&by=day')).toContain('Revenue $1,153.97 Sales 10 Refunds 0 Average');
    expect(columnsOf(page)[0]).toMatch(/^\w{3} \d{4}: \$123.00, 1 sale$/);
    // An axis of several years includes the year.
    await ask('range=5y&by=week');
    expect(page.page.text).toMatch(/<text[^>]*text-anchor="middle">\s*\d+ \w{3} \d{4}\s*<\/text>/);
    await ask('range=90d&by=week');
    expect(columnsOf(page).every((column) => column.startsWith('Week of '))).toBe(true);
    expect(
      new Set(columnsOf(page).map((column) => new Date(column.slice(8).split(':')[0]!).getUTCDay())),
    ).toHaveProperty('size', 1);
    expect(await ask(`currency=USD&game=${one.id}`)).toContain(`Sales of ${one.title}`);
    expect(page.words).toContain('Revenue $29.97');
    expect(page.words).not.toContain(two.title);
    // Highest earnings first.
    await ask('');
    expect(page.words.indexOf(two.title)).toBeLessThan(page.words.indexOf(one.title));
  });

  test('spaces the labels of the axis evenly', async () => {
    const seller = await make.user();
    await sold((await make.game({ owner: seller })).id, dayAgo(0), 'USD', 1, 100);
    const page = await browserOf(seller);
    for (const range of ['30d', '90d', '12m', '5y', '12m&by=week', '30d&by=week', '12m&by=day']) {
      await page.get(`${SALES}?range=${range}`);
      const labels = labelsOf(page);
      const gaps = labels.slice(1).map((x, i) => Math.round((x - labels[i]!) * 10));
      expect({ range, gaps: new Set(gaps).size }).toEqual({ range, gaps: 1 });
    }
  });

  test('compares custom dates with as many days before', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller });
    const days: [string, number, number][] = [
      ['2024-02-27', 1, 500],
      ['2024-02-28', 2, 1000],
      ['2024-02-29', 1, 700],
      ['2024-03-01', 2, 1300],
      ['2024-03-02', 4, 4000],
    ];
    for (const [day, purchases, amount] of days) await sold(mine.id, day, 'EUR', purchases, amount);
    const page = await browserOf(seller);
    const custom = (from: string, to: string) => page.get(`${SALES}?range=custom&from=${from}&to=${to}`);
    await custom('2024-02-29', '2024-03-01');
    expect(page.words).toContain('29 Feb 2024 to 1 Mar 2024 compared with the 2 days before');
    expect(page.words).toContain(
      'Revenue €20.00 +33% from €15.00 Sales 3 no change Refunds 0 no change Average order €6.67 +33% from €5.00',
    );
    expect(columnsOf(page)).toEqual(['29 Feb 2024: €7.00, 1 sale', '1 Mar 2024: €13.00, 2 sales']);
    // The form and each link keep the dates.
    expect(page.fieldsOf(SALES)).toMatchObject({
      range: 'custom',
      from: '2024-02-29',
      to: '2024-03-01',
      by: 'day',
    });
    expect(page.page.text).toContain(
      `range=custom&amp;from=2024-02-29&amp;to=2024-03-01&amp;game=${mine.id}"`,
    );
    // Whole months are summed from monthly totals.
    await custom('2024-02-01', '2024-02-29');
    expect(page.words).toContain('Revenue €22.00');
    await custom('2024-03-02', '2024-03-02');
    expect(page.words).toContain('compared with the day before');
    for (const [from, to, problem] of [
      ['2024-02-30', '2024-03-01', 'Enter a date such as 2026-01-31.'],
      ['', '', 'Enter a date such as 2026-01-31.'],
      ['2024-03-02', '2024-03-01', 'The first day must not be after the last day'],
      ['2999-01-01', '2999-01-02', 'The first day must not be after the last day'],
      ['2010-01-01', '2024-01-01', 'Choose a period of at most five years.'],
    ] as const) {
      await custom(from, to);
      expect(page.words).toContain(problem);
      expect(page.words).toContain('No sales from');
    }
  });

  test('counts refunds, sources and claimed keys of the sales in the period and currency', async () => {
    const seller = await make.user();
    const [mine, other] = [await make.game({ owner: seller }), await make.game({ owner })];
    const sell = (fields: object, games = [mine]) => make.purchase({ games, amount: 1000, ...fields });
    const claimed = await sell({ source: 'card' });
    const bundle = await sell({ source: 'bundle <1>', purchase_type: 'bundle', amount: 901 }, [mine, other]);
    const refunded = await sell({ source: 'card', status: 'refunded' });
    const yen = await sell({ source: 'card', currency: 'JPY' });
    await sell({ source: 'card', created_at: dayAgo(40), status: 'refunded' });
    await sell({ source: 'card', created_at: dayAgo(41), status: 'refunded' });
    for (const [purchase, user_id] of [
      [claimed, seller.id],
      [claimed, null],
      [bundle, null],
      [yen, seller.id],
    ] as const)
      await make.downloadKey({ game: mine, purchase_id: purchase.id, user_id });
    await make.downloadKey({ game: mine, purchase_id: refunded.id, revoked_at: dayAgo(0) });
    await make.downloadKey({ game: other, purchase_id: bundle.id, user_id: seller.id });
    await sold(mine.id, dayAgo(0), 'USD', 2, 1451);
    await sold(mine.id, dayAgo(0), 'JPY', 1, 1000);
    await sold(mine.id, dayAgo(40), 'USD', 1, 1000);
    const page = await browserOf(seller);
    await page.get(SALES);
    expect(page.words).toContain('Refunds 1 −50% from 2');
    expect(page.words).toContain('Keys claimed 33%');
    expect(page.words).toContain('33% 1 of 3');
    expect(page.words).toMatch(/By source .*card 1 \$10\.00 bundle <1> 1 \$4\.5[01]/);
    expect(page.words).not.toContain('newest 2,000');
    await page.get(`${SALES}?currency=JPY`);
    expect(page.words).toContain('100% 1 of 1');
  });

  test('reads only the newest 2,000 sales individually and says so', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, status, created_at)
         SELECT 'm@example.com', 'card', 'USD', 100, CASE WHEN i % 2 = 0 THEN 'refunded' ELSE 'complete' END, now() - i * interval '1 second'
         FROM generate_series(1, 2100) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [mine.id],
    );
    await sold(mine.id, dayAgo(0), 'USD', 1050, 105_000);
    const page = await browserOf(seller);
    await page.get(SALES);
    expect(page.words).toContain('Sales 1,050');
    expect(page.words).toContain('Refunds 1,000 Average');
    expect(page.words).toContain('cover only the newest 2,000 sales of a period.');
  });

  test('needs at most six statements', async () => {
    const seller = await make.user();
    const old = await make.game({ owner: seller });
    const page = await browserOf(seller);
    await sold(old.id, '2015-06-07', 'EUR', 1, 500);
    expect((await statementsOf(() => page.get(SALES))).length).toBeLessThanOrEqual(5);
    expect(page.words).toContain('Show all time');
    await page.get(/href="([^"]*range=all[^"]*)"/.exec(page.page.text)![1]!.replaceAll('&amp;', '&'));
    expect(page.page.text).toContain('Jun 2015: €5.00, 1 sale');
    expect(
      (await statementsOf(() => page.get(`${SALES}?range=all&game=${old.id}`))).length,
    ).toBeLessThanOrEqual(6);
  });

  test('folds games without sales after those with sales', async () => {
    const seller = await make.user();
    const games = [];
    for (let i = 0; i < 30; i++) games.push(await make.game({ owner: seller, title: `Number ${i}` }));
    for (const game of games.slice(0, 26)) await sold(game.id, dayAgo(1), 'USD', 1, 100);
    const page = await browserOf(seller);
    await page.get(SALES);
    expect(page.words).not.toContain('without sales');
    await page.get(`${SALES}?page=2`);
    expect(page.words).toContain('4 games without sales in USD Number 29');
    await page.get(`${SALES}?page=3`);
    expect(page.words).toContain('There are no more games.');
  });

  test('exports CSV by time, game and source, named after the game and dates', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller, title: '=Night, Ferry: Ⅱ!' });
    const odd = await make.game({ owner: seller, title: '夜' });
    await make.purchase({ games: [mine], source: 'card', amount: 1200, created_at: '2024-03-01T10:00:00Z' });
    await sold(mine.id, '2024-03-01', 'USD', 1, 1200);
    const page = await browserOf(seller);
    const file = async (query: string) => {
      const { headers, text } = await page.get(
        `${SALES}/figures.csv?range=custom&from=2024-02-29&to=2024-03-01&${query}`,
      );
      return [
        /filename="(.*)"/.exec(headers.get('content-disposition') ?? '')?.[1],
        ...text.trimEnd().split('\r\n'),
      ];
    };
    expect(await file('of=time')).toEqual([
      'sales-by-day-2024-02-29-to-2024-03-01.csv',
      'day,sales,currency,revenue',
      '2024-02-29,0,USD,0.00',
      '2024-03-01,1,USD,12.00',
    ]);
    expect(await file('of=game')).toEqual([
      'sales-by-game-2024-02-29-to-2024-03-01.csv',
      'game_id,game,sales,currency,revenue',
      `${mine.id},"'=Night, Ferry: Ⅱ!",1,USD,12.00`,
    ]);
    expect(await file(`of=source&game=${mine.id}`)).toEqual([
      'sales-by-source-night-ferry-2024-02-29-to-2024-03-01.csv',
      'source,sales,currency,revenue',
      'card,1,USD,12.00',
    ]);
    expect(await file(`of=source&game=${odd.id}`)).toEqual([
      `sales-by-source-game-${odd.id}-2024-02-29-to-2024-03-01.csv`,
      'source,sales,currency,revenue',
    ]);
    await file('of=x');
    expect(page.page.status).toBe(400);
  });

  test('begins all time with the month of the first sale', async () => {
    const seller = await make.user();
    const page = await browserOf(seller);
    const nameOf = async () =>
      (await page.get(`${SALES}/figures.csv?of=game&range=all`)).headers.get('content-disposition');
    const mine = await make.game({ owner: seller });
    await page.get(`${SALES}?range=all`);
    expect(page.words).toContain('There are no sales.');
    expect(page.words).not.toMatch(/\b19\d\d\b/);
    await sold(mine.id, '2015-06-07', 'EUR', 1, 500);
    const today = dayAgo(0).slice(0, 10);
    expect(await nameOf()).toBe(`attachment; filename="sales-by-game-2015-06-01-to-${today}.csv"`);
    await page.get(`${SALES}?range=all`);
    expect(page.words).toContain('1 Jun 2015 to ');
    // All sales of the game, in other currencies too.
    expect(page.page.text).toContain(`games/${mine.id}/buyers.csv"`);
  });

  describe('with five years of 10,000 sales per day', () => {
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
      ['totals', TOTALS as Statement, ['month', from, to], 16_000],
      ['totals of days', TOTALS as Statement, ['day', null, null], 12_000],
      ['columns', CHART_COLUMNS as Statement, ['USD', 'month', 'month'], 1200],
      ['columns of days', CHART_COLUMNS as Statement, ['USD', 'day', 'week'], 8000],
      ['ranked games', RANKED_GAMES as Statement, ['USD', 'month', 26, 0], 1200],
    ] as const)("%s are read only for the user's own games", async (_, statement, more, most) => {
      const client = new Client({ connectionString: databaseUrl() });
      await client.connect();
      const values = [seller.id, null, from, to, ...more];
      const { scanned, pages } = await planOf(client, statement, values).finally(() => client.end());
      expect(scanned).toEqual([]);
      expect(pages).toBeLessThan(most);
    });

    test.each(['range=12m', 'range=12m&by=day', 'range=5y', 'range=5y&by=week', 'range=all'])(
      'shows %s',
      async (query) => {
        const page = await browserOf(seller);
        await page.get(`${SALES}?${query}`);
        expect(page.words).toContain('CAD · ');
      },
    );
  });
});

describe('the Buyers page', () => {
  const path = () => `${GAMES}/${game.id}/buyers`;
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

  test('lists buyers newest first with purchase, key and status', async () => {
    await browser.get(path());
    expect(browser.words).toContain('Buyers of Bright <Harbour>');
    expect(browser.words).toContain(`Mara@example.com mara`);
    expect(browser.words).toContain(`Sale ${purchase.id} , card €12.34 Complete Claimed by mara 3 downloads`);
    expect(browser.words).toContain('<b>@example.com');
    expect(browser.words).toContain('Refunded No key');
    expect(browser.words).not.toContain('failed@example.com');
    const help = await browserOf(admin);
    expect((await help.get(path())).status).toBe(200);
    expect((await statementsOf(() => browser.get(path()))).length).toBeLessThanOrEqual(5);
  });

  test('is paged, whatever the URL contains', async () => {
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
    let next: string | undefined = `${GAMES}/${many.id}/buyers`;
    for (let i = 0; next && i < 5; i++) {
      await browser.get(next);
      seen.push(...[...browser.page.text.matchAll(/many\d+@/g)].map(([text]) => text));
      next = /href="([^"]*after=[^"]*)"[^>]*>Older/.exec(browser.page.text)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toEqual(Array.from({ length: 120 }, (_, i) => `many${120 - i}@`));
    for (const after of ['x', '2024-13-01 00:00:00+00,1', "2024-01-01 00:00:00+00,1'", ''])
      expect(
        (await browser.get(`${GAMES}/${many.id}/buyers?after=${encodeURIComponent(after)}`)).status,
      ).toBe(200);
  });

  test('exports all buyers as CSV without formulas and with escaped quotes', async () => {
    const shop = await make.game({ owner, title: 'Tin Shop' });
    const attacks = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1', '"=1"', 'a,b', 'plain'];
    attacks.push('a;=1', 'b; \t@c;-1', 'c;"=1;', 'x\u001b[31m\u202ey');
    for (const [i, source] of attacks.entries())
      await make.purchase({ games: [shop], source, email: `e${i}@example.com`, created_at: dayAgo(i) });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, created_at)
         SELECT 'many' || i || '@example.com', 'card', 'KWD', i, timestamptz '2020-01-01' FROM generate_series(1, 340) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [shop.id],
    );
    const { status, headers } = await browser.get(`${GAMES}/${shop.id}/buyers.csv`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(headers.get('content-disposition')).toBe(`attachment; filename="buyers-tin-shop.csv"`);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
    // fetch() removes the byte order mark.
    const [head, ...lines] = browser.page.text.split('\r\n').slice(0, -1);
    expect(head).toBe(
      'purchase,bought_at,email,user,currency,price,percent_off,quantity,type,donation,source,status,key,key_revoked,key_claimed_by,key_downloads,reference',
    );
    expect(lines).toHaveLength(attacks.length + 340);
    const sources = lines
      .slice(0, attacks.length)
      .map((line) => /,false,(.*),complete,,,,,$/s.exec(line)?.[1]);
    expect(sources).toEqual([
      "'=1+1",
      "'+1",
      "'-1",
      "'@SUM(A1)",
      "' =1",
      "' =1",
      "'＝1",
      `"'""=1"""`,
      '"a,b"',
      'plain',
      `"a;'=1"`,
      `"b;'  @c;'-1"`,
      `"c;'""=1;"`,
      'x [31m y',
    ]);
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(lines.at(-1)).toMatch(
      /^\d+,2020-01-01T00:00:00Z,many1@example.com,,KWD,0.001,0,1,game,false,card,complete,,,,,$/,
    );
  });

  test('exports CSV with references for the selected days', async () => {
    const { id } = purchase;
    await sql('INSERT INTO purchase_references (reference, purchase_id) VALUES ($1, $2)', ['order-7', id]);
    const today = dayAgo(0).slice(0, 10);
    const file = async (from: string, to: string) => {
      const { headers, text } = await browser.get(`${path()}.csv?from=${from}&to=${to}`);
      return { name: headers.get('content-disposition'), lines: text.split('\r\n').slice(1, -1) };
    };
    const { name, lines } = await file(today, today);
    expect(name).toContain(`"sales-bright-harbour-${today}-to-${today}.csv"`);
    expect(lines).toEqual([
      expect.stringMatching(
        `^${id},.*,Mara@example.com,mara,EUR,12.34,0,1,game,false,card,complete,\\d+,false,mara,3,order-7$`,
      ),
    ]);
    const yesterday = dayAgo(1).slice(0, 10);
    expect((await file(yesterday, today)).lines).toHaveLength(2);
    expect((await file('2020-01-01', '2020-12-31')).lines).toEqual([]);
    await file('2020-01-01', 'x');
    expect(browser.page.status).toBe(400);
  });

  test('exports CSV with a byte order mark, only with a session', async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${baseUrl()}${path()}.csv`, { headers, redirect: 'manual' });
    const bytes = Buffer.from(await (await ask(cookieOf(browser))).arrayBuffer());
    expect(bytes.subarray(0, 11).toString('latin1')).toBe('\xef\xbb\xbfpurchase');
    expect((await ask({})).status).toBe(303);
  });
});
