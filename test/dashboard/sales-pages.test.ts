import { addToPeriods } from '../../src/purchases/earnings/earnings';
import { Client } from 'pg';
import { SALES_FIGURES, TOTALS } from '../../src/purchases/sales/sales-report.service';
import { bind, type Statement } from '../../src/platform/database/statement';
import { SALES_LISTS, FIRST_PLACE } from '../../src/purchases/sales/sales-list.service';
import { explainPlan } from '../support/plans';
import { type Browser, signInBrowser, cookieHeaders } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, databaseUrl, theClock, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';
import { addSales } from '../support/selling';

useStore({ RATE_LIMIT: 'off', OPERATOR_TOKEN });

const SALES = '/user/settings/sales';
const FIGURES = `${SALES}/figures`;
const BUYERS = '/user/settings/buyers';
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
  browser = await signInBrowser(owner);
});

describe('the Sales page', () => {
  test('is in the navigation of users with games', async () => {
    expect((await browser.get('/login')).location).toBe('/user/settings');
    await browser.get(SALES);
    expect(browser.page.text).toContain(`<a href="${SALES}"  aria-current="page">Sales</a>`);
    const helper = await signInBrowser(admin);
    await helper.get('/user/games');
    expect(helper.page.text).toContain(SALES);
    const other = await signInBrowser(stranger);
    expect((await other.get('/user/settings')).location).toBe('/user/games');
    await other.follow();
    expect(other.page.text).not.toContain(SALES);
    await other.get(SALES);
    expect(other.words).toContain('You have no games yet.');
  });

  test("returns 404 for other users' games", async () => {
    const other = await signInBrowser(stranger);
    for (const path of [
      `${SALES}?game=${game.id}`,
      `${SALES}.csv?game=${game.id}`,
      `${FIGURES}?game=${game.id}`,
      `${FIGURES}.csv?of=time&game=${game.id}`,
      `${BUYERS}?game=${game.id}`,
      `${BUYERS}.csv?game=${game.id}`,
      `${SALES}?game=x`,
      `${BUYERS}?game=x`,
      `${BUYERS}.csv?game=4000000`,
    ])
      expect({ path, status: (await other.get(path)).status }).toEqual({ path, status: 404 });
  });

  test('lists the sales of all games, newest first, with buyer, game, price, status, source and key', async () => {
    const seller = await make.user();
    const [one, two] = [
      await make.game({ owner: seller, title: 'One' }),
      await make.game({ owner, admins: [seller as Actor], title: 'Two' }),
    ];
    const foreign = await make.game({ owner, title: 'Foreign' });
    await make.user({ username: 'mara', emails: [{ email: 'mara@example.com', verified: true }] });
    const day = (n: number) => `2024-03-0${n}T00:00:00Z`;
    const old = await make.purchase({ games: [one], email: 'a@example.com', created_at: day(1) });
    const refunded = await make.purchase({
      games: [two],
      email: 'Mara@example.com',
      created_at: day(2),
      status: 'refunded',
      source: 'bank_transfer',
    });
    const bundle = await make.purchase({
      games: [two, foreign, one],
      email: 'c@example.com',
      created_at: day(3),
      purchase_type: 'bundle',
      amount: 700,
      currency: 'EUR',
    });
    await make.purchase({ games: [one], email: 'pending@example.com', status: 'pending' });
    await make.purchase({ games: [foreign], email: 'foreign@example.com' });
    await make.downloadKey({ game: one, purchase_id: old.id, user_id: seller.id });
    await make.downloadKey({ game: two, purchase_id: refunded.id });
    const page = await signInBrowser(seller);
    await page.get(SALES);
    expect(page.words).toContain(
      `Key Sale ${bundle.id} 3 Mar 2024 c@example.com Copy c@example.com One and 1 more Bundle €7.00 Complete Card No key ` +
        `Sale ${refunded.id} 2 Mar 2024 Mara@example.com Copy Mara@example.com mara Two $5.00 Refunded Bank transfer Not claimed ` +
        `Sale ${old.id} 1 Mar 2024 a@example.com Copy a@example.com One $5.00 Complete Card Claimed`,
    );
    expect(page.words).not.toMatch(/pending@|foreign@|Foreign/);
    expect((await recordStatements(() => page.get(SALES))).length).toBeLessThanOrEqual(5);
  });

  test('names the bundle that was sold, also in the CSV file', async () => {
    const seller = await make.user();
    const game = await make.game({ owner: seller });
    const bundle = await make.bundle({ owner: seller, games: [game], title: 'Pier & more, \u202etxt' });
    await make.purchase({ games: [game], bundle_id: bundle.id, purchase_type: 'bundle' });
    await make.purchase({ games: [game] });
    const page = await signInBrowser(seller);
    await page.get(SALES);
    expect(page.page.text).toContain('in Pier &amp; more, txt<');
    const { text } = await page.get(`${SALES}.csv`);
    const [, ...lines] = text.trimEnd().split('\r\n');
    expect(lines.filter((line) => line.endsWith(',"Pier & more,  txt"'))).toHaveLength(1);
    expect(lines).toHaveLength(2);
  });

  test('lists a bundle of many games, without a wrong number of games or keys', async () => {
    const seller = await make.user();
    const games = await Promise.all(Array.from({ length: 102 }, () => make.game({ owner: seller })));
    const purchase = await make.purchase({ games: games.slice(0, 100), purchase_type: 'bundle' });
    const page = await signInBrowser(seller);
    await page.get(SALES);
    expect(page.words).toContain(' and 99 more Bundle $5.00 Complete Card No key');
    await make.purchase({ games: games.slice(0, 101), purchase_type: 'bundle' });
    await sql(
      `INSERT INTO download_keys (key, game_id, purchase_id) SELECT 'many-' || id, id, $1 FROM games WHERE id = ANY($2)`,
      [purchase.id, games.map(({ id }) => id)],
    );
    await addSales(games[0]!.id, dayAgo(0), 'USD', 201, 1000);
    await page.get(SALES);
    expect(page.words).toContain('from 201 sales. A bundle counts as a sale of each of its games.');
    expect(page.words).toMatch(
      / and 99\+ more Bundle .* and 99 more Bundle \$5\.00 Complete Card 100\+ keys/,
    );
    const { text } = await page.get(`${SALES}.csv`);
    for (const line of text.trimEnd().split('\r\n').slice(1))
      expect(line.split(',')[2]!.split(' ')).toHaveLength(100);
  });

  test('lists the sales and the sum of all time for invalid dates', async () => {
    const seller = await make.user();
    await addSales((await make.game({ owner: seller })).id, '2019-03-01', 'USD', 2, 1000);
    const page = await signInBrowser(seller);
    await page.get(`${SALES}?range=custom&from=2024-02-30&to=2024-03-01`);
    expect(page.words).toMatch(/Enter a date such as 2026-01-31\. All time: \$10\.00 from 2 sales/);
  });

  describe('with many sales', () => {
    let seller: Actor;
    let games: { id: number }[];
    let page: Browser;
    const COUNT = 130;

    beforeAll(async () => {
      seller = await make.user();
      games = [];
      for (let i = 0; i < 4; i++) games.push(await make.game({ owner: seller }));
      // Several at the same time, and bundles of two or all of the games.
      await sql(
        `WITH made AS (
           INSERT INTO purchases (email, source, currency, amount, status, purchase_type, created_at)
           SELECT 'many' || i || '@example.com', CASE WHEN i % 40 = 7 THEN 'rare_one' ELSE 'card' END,
             CASE WHEN i % 2 = 0 THEN 'EUR' ELSE 'USD' END, i, CASE WHEN i % 10 = 3 THEN 'refunded' ELSE 'complete' END,
             CASE WHEN i % 5 = 0 THEN 'bundle' ELSE 'game' END, timestamptz '2024-01-01' + i / 3 * interval '1 day'
           FROM generate_series(1, ${COUNT}) i RETURNING id, amount AS i)
         INSERT INTO purchase_games (purchase_id, game_id)
         SELECT id, g FROM made, unnest($1::bigint[]) WITH ORDINALITY AS games (g, n)
         WHERE i % 4 = n - 1 OR i % 5 = 0 AND (i % 4 = n % 4 OR i % 15 = 0)`,
        [games.map(({ id }) => id)],
      );
      page = await signInBrowser(seller);
    });

    const numbers = () =>
      [...page.page.text.matchAll(/id="buyer-\d+"[^>]*>many(\d+)@/g)].map(([, n]) => Number(n));
    const link = (words: string) =>
      new RegExp(`href="([^"]*)"[^>]*>${words}\\s*<`).exec(page.page.text)?.[1]?.replaceAll('&amp;', '&');
    const all = (where: (i: number) => boolean = () => true) =>
      Array.from({ length: COUNT }, (_, i) => COUNT - i).filter(where);

    test.each([
      ['', all()],
      ['status=refunded', all((i) => i % 10 === 3)],
      ['currency=EUR', all((i) => i % 2 === 0)],
      ['source=Rare+One', all((i) => i % 40 === 7)],
      [
        'range=custom&from=2024-01-10&to=2024-01-30',
        all((i) => Math.floor(i / 3) >= 9 && Math.floor(i / 3) <= 29),
      ],
      ['status=refunded&currency=USD&source=card', all((i) => i % 10 === 3 && i % 40 !== 7)],
    ])('pages through ?%s to the end and back', async (query, expected) => {
      const seen: number[] = [];
      await page.get(`${SALES}?${query}`);
      expect(link('Newer')).toBeUndefined();
      const pages = [];
      for (let i = 0; i < 6; i++) {
        pages.push(numbers());
        seen.push(...numbers());
        const older = link('Older');
        if (!older) break;
        await page.get(older);
      }
      expect(seen).toEqual(expected);
      for (const earlier of pages.slice(0, -1).reverse()) {
        await page.get(link('Newer')!);
        expect(numbers()).toEqual(earlier);
      }
      expect(link('Newer')).toBeUndefined();
      expect(page.page.text).toContain(link('Older') ? 'Older' : '');
    });

    test('reads the same sales if PostgreSQL sorts them instead of following an index', async () => {
      const client = new Client({ connectionString: databaseUrl() });
      await client.connect();
      const { statement, values } = bind(SALES_LISTS.older, {
        user_id: seller.id,
        game_id: null,
        since: '-infinity',
        until: 'infinity',
        ...FIRST_PLACE.older,
        games_read: 200,
        sales_per_game: 21,
        currency: null,
        status: null,
        source: null,
        limit: 21,
      });
      const read = async () => (await client.query(statement.text, values)).rows;
      const expected = await read();
      await client.query('SET enable_indexscan = off');
      await client.query('SET enable_indexonlyscan = off');
      const sorted = await read().finally(() => client.end());
      expect(sorted).toEqual(expected);
      expect(sorted).toHaveLength(21);
    });

    test('lists only the sales of the selected game, including bundles', async () => {
      await page.get(`${SALES}?game=${games[1]!.id}`);
      expect(page.page.text).toContain(`<a href="/user/settings/games/${games[1]!.id}/details" >Details</a>`);
      const own = all((i) => i % 4 === 1 || (i % 5 === 0 && (i % 4 === 2 || i % 15 === 0)));
      expect(numbers()).toEqual(own.slice(0, 50));
    });

    test('keeps the filters in its form and its links, and shows the sum of the period', async () => {
      await page.get(`${SALES}?currency=EUR&status=complete&range=custom&from=2024-01-10&to=2024-01-30`);
      expect(page.formFields(SALES)).toEqual({
        game: '',
        range: 'custom',
        from: '2024-01-10',
        to: '2024-01-30',
        status: 'complete',
        currency: 'EUR',
        source: '',
      });
      expect(page.page.text).toContain(
        `${SALES}.csv?status=complete&amp;currency=EUR&amp;range=custom&amp;from=2024-01-10&amp;to=2024-01-30`,
      );
      await page.get(`${SALES}?source=nothing`);
      expect(page.words).toContain('No sale matches. Show all sales');
      for (const query of [
        'status=x',
        'after=x',
        'before=2024-13-01 00:00:00%2B00,1',
        'after=2024-02-31 00:00:00%2B00,1',
        'after=0000-01-01 00:00:00%2B00,1',
        'range=x',
        'from=x',
        'currency=',
      ])
        expect({ query, seen: (await page.get(`${SALES}?${query}`), numbers().length) }).toEqual({
          query,
          seen: 50,
        });
    });

    test('exports all of them, or those of a filter, as one CSV', async () => {
      const { text, headers } = await page.get(`${SALES}.csv`);
      expect(headers.get('content-disposition')).toBe('attachment; filename="sales.csv"');
      const [head, ...lines] = text.trimEnd().split('\r\n');
      expect(head).toBe(
        'purchase,bought_at,game_ids,games,email,user,currency,price,percent_off,quantity,type,donation,source,status,keys,keys_claimed,downloads,reference,bundle',
      );
      expect(lines.map((line) => Number(/,many(\d+)@/.exec(line)?.[1]))).toEqual(all());
      await page.get(`${SALES}.csv?status=refunded&range=custom&from=2024-01-10&to=2024-01-30`);
      expect(page.page.headers.get('content-disposition')).toContain('"sales-2024-01-10-to-2024-01-30.csv"');
      expect(page.page.text.match(/,refunded,/g)).toHaveLength(
        page.page.text.trimEnd().split('\r\n').length - 1,
      );
    });
  });
});

describe('the Figures page', () => {
  const readColumnLabels = (page: Browser) =>
    [...page.page.text.matchAll(/<g class="column"[^>]* aria-label="([^"]*)"/g)].map(([, label]) => label!);
  const readLabelPositions = (page: Browser) =>
    [...page.page.text.matchAll(/<text[^>]* x="([\d.]+)%" y="338"/g)].map(([, x]) => Number(x));

  test('groups by currency, by day, week and month, for one game or all', async () => {
    const seller = await make.user();
    const [one, two] = [await make.game({ owner: seller }), await make.game({ owner: seller })];
    await addSales(one.id, dayAgo(0), 'USD', 2, 1998);
    await addSales(one.id, dayAgo(3), 'USD', 1, 999);
    await addSales(one.id, dayAgo(3), 'JPY', 4, 2000);
    await addSales(two.id, dayAgo(3), 'USD', 5, 100_000);
    await addSales(two.id, dayAgo(200), 'USD', 1, 100);
    await addSales(two.id, dayAgo(3000), 'USD', 1, 12_300);
    const page = await signInBrowser(seller);
    const ask = async (query: string) => {
      await page.get(`${FIGURES}?${query}`);
      return page.words;
    };
    expect(await ask('')).toContain(
      'Revenue $1,029.97 from $0.00 Sales 8 from 0 Refunds 0 no change Average order $128.75',
    );
    expect(page.words).toContain('USD · 8 sales JPY · 4 sales');
    await ask('currency=JPY');
    expect(page.page.text).toContain('Sales: revenue in JPY and number of sales, by day');
    expect(readColumnLabels(page)).toHaveLength(30);
    expect(readColumnLabels(page).at(-1)).toMatch(/: ¥0, 0 sales$/);
    expect(readColumnLabels(page).at(-4)).toMatch(/: ¥2,000, 4 sales$/);
    expect(page.words).toContain(`1 game without sales in JPY ${two.title}`);
    await ask('currency=XXX');
    expect(readColumnLabels(page).at(-1)).toMatch(/: \$19.98, 2 sales$/);
    expect(await ask('range=12m')).toContain('Revenue $1,030.97');
    expect(readColumnLabels(page)).toHaveLength(12);
    await ask('range=constructor');
    expect(readColumnLabels(page)).toHaveLength(30);
    await ask('range=5y');
    expect(readColumnLabels(page)).toHaveLength(60);
    expect(await ask('range=all&by=day')).toContain('Revenue $1,153.97 Sales 10 Refunds 0 Average');
    expect(readColumnLabels(page)[0]).toMatch(/^\w{3} \d{4}: \$123.00, 1 sale$/);
    // An axis of several years includes the year.
    await ask('range=5y&by=week');
    expect(page.page.text).toMatch(/<text[^>]*text-anchor="middle">\s*\d+ \w{3} \d{4}\s*<\/text>/);
    await ask('range=90d&by=week');
    expect(readColumnLabels(page).every((column) => column.startsWith('Week of '))).toBe(true);
    expect(
      new Set(readColumnLabels(page).map((column) => new Date(column.slice(8).split(':')[0]!).getUTCDay())),
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
    await addSales((await make.game({ owner: seller })).id, dayAgo(0), 'USD', 1, 100);
    const page = await signInBrowser(seller);
    for (const range of ['30d', '90d', '12m', '5y', '12m&by=week', '30d&by=week', '12m&by=day']) {
      await page.get(`${FIGURES}?range=${range}`);
      const labels = readLabelPositions(page);
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
    for (const [day, purchases, amount] of days) await addSales(mine.id, day, 'EUR', purchases, amount);
    const page = await signInBrowser(seller);
    const custom = (from: string, to: string) => page.get(`${FIGURES}?range=custom&from=${from}&to=${to}`);
    await custom('2024-02-29', '2024-03-01');
    expect(page.words).toContain('29 Feb 2024 to 1 Mar 2024 compared with the 2 days before');
    expect(page.words).toContain(
      'Revenue €20.00 +33% from €15.00 Sales 3 no change Refunds 0 no change Average order €6.67 +33% from €5.00',
    );
    expect(readColumnLabels(page)).toEqual([
      '29 Feb 2024: €7.00, 1 sale; before: €5.00',
      '1 Mar 2024: €13.00, 2 sales; before: €10.00',
    ]);
    // The form and each link keep the dates.
    expect(page.formFields(FIGURES)).toMatchObject({
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
    await addSales(mine.id, dayAgo(0), 'USD', 2, 1451);
    await addSales(mine.id, dayAgo(0), 'JPY', 1, 1000);
    await addSales(mine.id, dayAgo(40), 'USD', 1, 1000);
    const page = await signInBrowser(seller);
    await page.get(FIGURES);
    expect(page.words).toContain('Refunds 1 −50% from 2');
    expect(page.words).toContain('Keys claimed 33%');
    expect(page.words).toContain('33% 1 of 3');
    expect(page.words).toMatch(/By source .*Card 1 \$10\.00 bundle <1> 1 \$4\.5[01]/);
    expect(page.words).not.toContain('newest 2,000');
    await page.get(`${FIGURES}?currency=JPY`);
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
    await addSales(mine.id, dayAgo(0), 'USD', 1050, 105_000);
    const page = await signInBrowser(seller);
    await page.get(FIGURES);
    expect(page.words).toContain('Sales 1,050');
    expect(page.words).toContain('Refunds 1,000 Average');
    expect(page.words).toContain('cover only the newest 2,000 sales of a period.');
  });

  test('needs at most six statements', async () => {
    const seller = await make.user();
    const old = await make.game({ owner: seller });
    const page = await signInBrowser(seller);
    await addSales(old.id, '2015-06-07', 'EUR', 1, 500);
    expect((await recordStatements(() => page.get(FIGURES))).length).toBeLessThanOrEqual(5);
    expect(page.words).toContain('Show all time');
    await page.get(/href="([^"]*range=all[^"]*)"/.exec(page.page.text)![1]!.replaceAll('&amp;', '&'));
    expect(page.page.text).toContain('Jun 2015: €5.00, 1 sale');
    expect(
      (await recordStatements(() => page.get(`${FIGURES}?range=all&game=${old.id}`))).length,
    ).toBeLessThanOrEqual(6);
  });

  test('folds games without sales after those with sales', async () => {
    const seller = await make.user();
    const games = [];
    for (let i = 0; i < 30; i++) games.push(await make.game({ owner: seller, title: `Number ${i}` }));
    for (const game of games.slice(0, 26)) await addSales(game.id, dayAgo(1), 'USD', 1, 100);
    const page = await signInBrowser(seller);
    await page.get(FIGURES);
    expect(page.words).not.toContain('without sales');
    await page.get(`${FIGURES}?page=2`);
    expect(page.words).toContain('4 games without sales in USD Number 29');
    await page.get(`${FIGURES}?page=3`);
    expect(page.words).toContain('There are no more games.');
  });

  test('exports CSV by time, game and source, named after the game and dates', async () => {
    const seller = await make.user();
    const mine = await make.game({ owner: seller, title: '=Night, Ferry: Ⅱ!' });
    const odd = await make.game({ owner: seller, title: '夜' });
    await make.purchase({ games: [mine], source: 'card', amount: 1200, created_at: '2024-03-01T10:00:00Z' });
    await addSales(mine.id, '2024-03-01', 'USD', 1, 1200);
    const page = await signInBrowser(seller);
    const file = async (query: string) => {
      const { headers, text } = await page.get(
        `${FIGURES}.csv?range=custom&from=2024-02-29&to=2024-03-01&${query}`,
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
    const page = await signInBrowser(seller);
    const readContentDisposition = async () =>
      (await page.get(`${FIGURES}.csv?of=game&range=all`)).headers.get('content-disposition');
    const mine = await make.game({ owner: seller });
    await page.get(`${FIGURES}?range=all`);
    expect(page.words).toContain('There are no sales.');
    expect(page.words).not.toMatch(/\b19\d\d\b/);
    await addSales(mine.id, '2015-06-07', 'EUR', 1, 500);
    const today = dayAgo(0).slice(0, 10);
    expect(await readContentDisposition()).toBe(
      `attachment; filename="sales-by-game-2015-06-01-to-${today}.csv"`,
    );
    await page.get(`${FIGURES}?range=all`);
    expect(page.words).toContain('1 Jun 2015 to ');
    expect(page.page.text).toContain(`${SALES}?game=${mine.id}&amp;range=all"`);
  });

  describe('with five years of 10,000 sales per day', () => {
    let seller: Actor;
    const [from, to] = [dayAgo(5 * 365).slice(0, 10), dayAgo(0).slice(0, 10)];
    const figures = {
      previous_from: null,
      previous_to: null,
      currency: 'USD',
      days: 0,
      limit: 26,
      offset: 0,
    };

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
      ['totals', TOTALS as Statement, { summed: 'month' }, 1500],
      [
        'figures of months',
        SALES_FIGURES as Statement,
        { ...figures, summed: 'month', unit: 'month', summed_for_columns: 'month' },
        1500,
      ],
      [
        'figures of weeks',
        SALES_FIGURES as Statement,
        { ...figures, summed: 'month', unit: 'week', summed_for_columns: 'day' },
        9000,
      ],
      [
        'figures of days',
        SALES_FIGURES as Statement,
        {
          ...figures,
          summed: 'day',
          previous_from: from,
          previous_to: to,
          unit: 'day',
          summed_for_columns: 'day',
          currency: null,
        },
        30_000,
      ],
    ] as const)("%s are read only for the user's own games", async (_, statement, more, most) => {
      const client = new Client({ connectionString: databaseUrl() });
      await client.connect();
      const values = { user_id: seller.id, game_id: null, from, to, ...more };
      const { scanned, pages } = await explainPlan(client, statement, values).finally(() => client.end());
      expect(scanned).toEqual([]);
      expect(pages).toBeLessThan(most);
    });

    test.each(['range=12m', 'range=12m&by=day', 'range=5y', 'range=5y&by=week', 'range=all'])(
      'shows %s',
      async (query) => {
        const page = await signInBrowser(seller);
        await page.get(`${FIGURES}?${query}`);
        expect(page.words).toContain('CAD · ');
      },
    );
  });
});

describe('the Buyers page', () => {
  let seller: Actor;
  let mine: { id: number };
  let page: Browser;

  beforeAll(async () => {
    seller = await make.user();
    mine = await make.game({ owner: seller, title: 'Tin Shop' });
    const other = await make.game({ owner: seller });
    await make.user({
      username: 'two-mails',
      emails: ['one@example.org', 'two@example.org'].map((email) => ({ email, verified: true })),
    });
    const buy = (email: string, day: number, fields: object = {}, games = [mine]) =>
      make.purchase({ games, email, created_at: `2024-03-0${day}T00:00:00Z`, ...fields });
    await buy('one@example.org', 1, { amount: 100 });
    await buy('Two@example.org', 2, { amount: 250 });
    await buy('two@example.org', 3, { amount: 400, currency: 'EUR' }, [other]);
    await buy('<b>@example.com', 4);
    await buy('<B>@example.com', 5, { status: 'refunded' });
    await buy('failed@example.com', 6, { status: 'failed' });
    await make.purchase({ games: [game], email: 'one@example.org' });
    await buy('nobody@erased.invalid', 7);
    page = await signInBrowser(seller);
  });

  test('lists people by account, otherwise by email address, with orders, refunds, totals and dates', async () => {
    await page.get(BUYERS);
    expect(page.words).toContain('Buyers with the most recent purchases are listed first.');
    expect(page.words).toContain(
      'Last purchase <B>@example.com Copy <B>@example.com 2 1 $5.00 4 Mar 2024 5 Mar 2024 ' +
        'two@example.org Copy two@example.org two-mails 3 0 €4.00 $3.50 1 Mar 2024 3 Mar 2024',
    );
    expect(page.words).not.toMatch(/failed@|erased/);
    expect((await recordStatements(() => page.get(BUYERS))).length).toBeLessThanOrEqual(4);
    await page.get(/href="([^"]*\/buyer)"[^>]*>two@/.exec(page.page.text)![1]!);
    expect(page.words).toMatch(/^two-mails Email address .* Orders 3 /);
  });

  test('counts only the sales of the selected game', async () => {
    await page.get(`${BUYERS}?game=${mine.id}`);
    expect(page.words).toContain('Buyers of Tin Shop');
    expect(page.words).toContain(
      'Two@example.org Copy Two@example.org two-mails 2 0 $3.50 1 Mar 2024 2 Mar 2024',
    );
    const { text, headers } = await page.get(`${BUYERS}.csv?game=${mine.id}`);
    expect(headers.get('content-disposition')).toBe('attachment; filename="buyers-tin-shop.csv"');
    expect(text.split('\r\n')).toEqual([
      'email,user,orders,refunds,totals,first_bought_at,last_bought_at,last_purchase',
      expect.stringMatching(
        /^<B>@example\.com,,2,1,5\.00 USD,2024-03-04T00:00:00Z,2024-03-05T00:00:00Z,\d+$/,
      ),
      expect.stringMatching(/^Two@example\.org,two-mails,2,0,3\.50 USD,/),
      '',
    ]);
  });

  test('is paged in both directions', async () => {
    const many = await make.game({ owner });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, created_at)
         SELECT 'many' || i % 120 || '@example.com', 'card', 'USD', 100, timestamptz '2024-01-01' + i * interval '1 second'
         FROM generate_series(1, 240) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [many.id],
    );
    const addresses = () =>
      [...browser.page.text.matchAll(/id="buyer-\d+"[^>]*>(many\d+)@/g)].map(([, text]) => text!);
    const link = (words: string) =>
      new RegExp(`href="([^"]*)"[^>]*>${words}<`).exec(browser.page.text)?.[1]?.replaceAll('&amp;', '&');
    const pages: string[][] = [];
    for (
      let next: string | undefined = `${BUYERS}?game=${many.id}`;
      next && pages.length < 5;
      next = link('Older')
    ) {
      await browser.get(next);
      pages.push(addresses());
    }
    expect(pages.flat()).toEqual(Array.from({ length: 120 }, (_, i) => `many${(240 - i) % 120}`));
    expect(pages.map(({ length }) => length)).toEqual([50, 50, 20]);
    for (const page of pages.slice(0, 2).reverse()) {
      await browser.get(link('Newer')!);
      expect(addresses()).toEqual(page);
    }
    expect(link('Newer')).toBeUndefined();
    const { text } = await browser.get(`${BUYERS}.csv?game=${many.id}`);
    expect(text.trim().split('\r\n')).toHaveLength(121);
  });

  test('ends where all older sales are by buyers who are listed before', async () => {
    const shop = await make.game({ owner });
    await sql(
      `WITH made AS (
         INSERT INTO purchases (email, source, currency, amount, created_at)
         SELECT CASE WHEN i = 1 THEN 'first@example.com' ELSE 'often@example.com' END, 'card', 'USD', 100,
           timestamptz '2024-01-01' + i * interval '1 second'
         FROM generate_series(1, 700) i RETURNING id)
       INSERT INTO purchase_games (purchase_id, game_id) SELECT id, $1 FROM made`,
      [shop.id],
    );
    await browser.get(`${BUYERS}?game=${shop.id}`);
    expect(browser.words).toContain(
      'often@example.com 699 0 $699.00 1 Jan 2024 1 Jan 2024 first@example.com',
    );
    expect(browser.page.text).not.toContain('>Older<');
  });
});

describe('the CSV of sales', () => {
  test('has no formulas, and escaped quotes', async () => {
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
    const { status, headers } = await browser.get(`${SALES}.csv?game=${shop.id}`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(headers.get('content-disposition')).toBe(`attachment; filename="sales-tin-shop.csv"`);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
    // fetch() removes the byte order mark.
    const [head, ...lines] = browser.page.text.split('\r\n').slice(0, -1);
    expect(head).toBe(
      'purchase,bought_at,game_ids,games,email,user,currency,price,percent_off,quantity,type,donation,source,status,keys,keys_claimed,downloads,reference,bundle',
    );
    expect(lines).toHaveLength(attacks.length + 340);
    const sources = lines
      .slice(0, attacks.length)
      .map((line) => /,false,(.*),complete,0,0,0,,$/s.exec(line)?.[1]);
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
      /^\d+,2020-01-01T00:00:00Z,\d+,Tin Shop,many1@example.com,,KWD,0.001,0,1,game,false,card,complete,0,0,0,,$/,
    );
  });

  test('has a byte order mark, and needs a session', async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${baseUrl()}${SALES}.csv?game=${game.id}`, { headers, redirect: 'manual' });
    const bytes = Buffer.from(await (await ask(cookieHeaders(browser))).arrayBuffer());
    expect(bytes.subarray(0, 11).toString('latin1')).toBe('\xef\xbb\xbfpurchase');
    expect((await ask({})).status).toBe(303);
  });
});
