import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { lengthenWaits } from '../support/attempts';
import { Browser, signInBrowser } from '../support/browser';
import { holdLocks, untilBlocked } from '../support/locks';
import { type Actor } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore({ FILES_DIR: '/nonexistent' });

const GAMES = '/user/games';
const REDEEM = `${GAMES}/redeem`;
let owner: Actor;
let player: Actor;
let game: { id: number; title: string };
let browser: Browser;

beforeAll(async () => {
  ({ owner } = await actors());
  player = await make.user({ emails: [{ email: 'player@example.com', verified: true }] });
  game = await make.game({ owner, title: 'Bright <Harbor>', traits: '{p_windows,p_linux}' });
  browser = await signInBrowser(player);
});

const redeem = async (key: string, as = browser) => {
  await as.get(REDEEM);
  return as.submit(REDEEM, { key });
};

test('a player who signs in sees their games, and a seller sees the games that they sell', async () => {
  await browser.get('/user/settings');
  expect(browser.page.location).toBe(GAMES);
  const seller = await signInBrowser(owner);
  await seller.get('/user/settings');
  expect(seller.page.location).toBe('/user/settings/sales');
});

test('the library lists keys with their receipts, purchases without keys, and nothing of other players', async () => {
  const bought = await make.user({ emails: [{ email: 'buyer@example.com', verified: true }] });
  const [web, gift] = [
    await make.game({ owner, title: 'Web game' }),
    await make.game({ owner, title: 'Gift' }),
  ];
  const purchase = await make.purchase({ games: [game], email: 'buyer@example.com', amount: 499 });
  const { key } = await make.downloadKey({ game, purchase_id: purchase.id, email: 'buyer@example.com' });
  await make.purchase({ games: [web], user_id: bought.id, email: 'buyer@example.com', donation: true });
  // Two keys of one game.
  for (let i = 0; i < 2; i++) await make.downloadKey({ game: gift, user_id: bought.id });
  await make.downloadKey({
    game: gift,
    user_id: bought.id,
    revoked_at: '2026-01-01T00:00:00Z',
    key: 'revoked-key',
  });
  const foreign = await make.downloadKey({ game, user_id: owner.id });
  const mine = await signInBrowser(bought);
  await mine.get(GAMES);
  expect(mine.words).toContain('Bright <Harbor> by');
  expect(mine.words).toMatch(/Windows, Linux/);
  expect(mine.words).toContain(key);
  expect(mine.words).toMatch(new RegExp(`for \\$4\\.99, receipt ${purchase.id}`));
  expect(mine.words).toContain('Web game');
  expect(mine.page.text.match(/<h2>\s*Gift/g)).toHaveLength(1);
  const ids = [...mine.page.text.matchAll(/ id="(key-[^"]+)"/g)].map(([, id]) => id);
  expect([ids.length, new Set(ids).size]).toEqual([3, 3]);
  expect(mine.words).not.toContain('revoked-key');
  expect(mine.words).not.toContain(foreign.key);
});

test('each owned game lists its files, which only the player can download', async () => {
  const reader = await make.user();
  const [owned, other] = [
    await make.game({ owner, title: 'Tin Comet', min_price: 500 }),
    await make.game({ owner, min_price: 500 }),
  ];
  const key = await make.downloadKey({ game: owned, user_id: reader.id, account_id: reader.id });
  const hosted = await make.upload({
    game: owned,
    filename: 'comet <1>.zip',
    traits: ['p_osx'],
    file_key: 'comet/1.zip',
    size: 1_234_567,
  });
  await make.build({ game: owned, file_key: 'comet/2.zip', size: 999, user_version: '2.0' });
  await make.upload({ game: owned, channel_name: 'windows', display_name: 'Tin Comet for Windows' });
  await make.upload({ game: owned, external_url: 'https://shop.example/comet' });
  await make.upload({ game: owned, channel_name: 'empty', display_name: 'Nothing yet' });
  const foreign = await make.upload({ game: other, filename: 'foreign.zip' });
  const mine = await signInBrowser(reader);
  await mine.get(GAMES);
  expect(mine.words).toMatch(/comet <1>\.zip macOS · 1\.2 MB/);
  expect(mine.words).toMatch(/Tin Comet for Windows version 2\.0 · 999 bytes/);
  expect(mine.words).toMatch(/moon\.zip opens shop\.example/);
  expect(mine.words).not.toMatch(/Nothing yet|foreign/);

  const link = `${GAMES}/downloads/${hosted.id}`;
  expect(mine.page.text).toContain(`href="${link}"`);
  const { status, headers, location } = await mine.get(link);
  expect([status, headers.get('cache-control')]).toEqual([303, 'no-store']);
  expect(location).toMatch(/\/files\/[\w.-]+\/comet/);
  await theApp().get(DownloadCounts).flush();
  expect(await sql('SELECT downloads FROM download_keys WHERE id = $1', [key.id])).toEqual([
    { downloads: 1 },
  ]);
  expect((await mine.get(`${GAMES}/downloads/${foreign.id}`)).status).toBe(403);
  expect(mine.words).toContain('You don’t own this game, so you can’t download this file.');
  for (const id of ['4000000', 'x']) expect((await mine.get(`${GAMES}/downloads/${id}`)).status).toBe(404);
  expect((await new Browser().get(link)).location).toMatch(/^\/login/);
});

test('a button downloads the file for the visitor’s platform, and the others stay in reach', async () => {
  const reader = await make.user();
  const owned = await make.game({ owner, title: 'Wide <Sea>', min_price: 500 });
  await make.downloadKey({ game: owned, user_id: reader.id, account_id: reader.id });
  for (const [filename, ...traits] of [
    ['demo.zip', 'p_windows', 'demo'],
    ['sea.exe', 'p_windows'],
    ['sea.tar', 'p_linux'],
    ['sea-demo.apk', 'p_android', 'demo'],
  ])
    await make.upload({ game: owned, filename, traits });
  const mine = await signInBrowser(reader);
  const button = async (agent?: string) => {
    await mine.get(GAMES, agent === undefined ? {} : { 'user-agent': agent });
    expect(mine.words).toMatch(/demo\.zip .*sea\.exe .*sea\.tar .*sea-demo\.apk/);
    return /Download (?:demo )?for \w+ : Wide <Sea>/.exec(mine.words)?.[0];
  };
  expect(await button('Mozilla/5.0 (Windows NT 10.0; Win64; x64)')).toBe('Download for Windows : Wide <Sea>');
  const [, file] = /class="button" href="([^"]*)"\s*>Download for/.exec(mine.page.text)!;
  expect(mine.page.text).toMatch(new RegExp(`href="${file}">sea\\.exe`));
  expect(await button('Mozilla/5.0 (X11; Linux x86_64)')).toBe('Download for Linux : Wide <Sea>');
  expect(await button('Mozilla/5.0 (Linux; Android 14; Pixel 8)')).toBe(
    'Download demo for Android : Wide <Sea>',
  );
  expect(await button('Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)')).toBeUndefined();
  expect(mine.page.text).toMatch(/<details\s+open>\s*<summary>\s*Files/);
  expect(await button()).toBeUndefined();
});

test('the library is searched and sorted, and its pages keep both', async () => {
  const reader = await make.user();
  const bundle = await make.bundle({ owner, games: [game], title: 'alpha bundle' });
  await make.purchase({ games: [game], user_id: reader.id, bundle_id: bundle.id, purchase_type: 'bundle' });
  for (let n = 0; n < 26; n++) {
    const one = await make.game({
      owner,
      title: `${n % 2 ? 'Alpha' : 'beta'} ${String(n).padStart(2, '0')}%`,
    });
    await make.downloadKey({
      game: one,
      user_id: reader.id,
      created_at: `2026-01-${String(n + 1).padStart(2, '0')}`,
    });
  }
  const mine = await signInBrowser(reader);
  const titles = async (query: string) => {
    await mine.get(`${GAMES}${query}`);
    return [...mine.page.text.matchAll(/<h2>\s*(?:<a[^>]*>)?([^<]*?)(?:<\/a>)?\s*<\/h2>/g)].map(
      ([, title]) => title,
    );
  };
  const found = await titles('?search=ALPHA&sort=title');
  expect(found.slice(0, 2)).toEqual(['Alpha 01%', 'Alpha 03%']);
  expect(found.at(-1)).toBe('alpha bundle');
  expect((await titles('?search=alpha')).slice(1, 3)).toEqual(['Alpha 25%', 'Alpha 23%']);
  expect(await titles('?search=%25&sort=title')).toHaveLength(24);
  expect(mine.page.text).toContain('href="/user/games?search=%25&amp;sort=title&amp;page=2"');
  expect(await titles('?search=%25&sort=title&page=2')).toEqual(['beta 22%', 'beta 24%']);
  expect(mine.page.text).toContain('href="/user/games?search=%25&amp;sort=title"');
  expect(await titles('?search=<none>')).toEqual([]);
  expect(mine.words).toContain('No game’s title contains “<none>”.');
});

test('a game with many files lists the first ones and says so', async () => {
  const reader = await make.user();
  const many = await make.game({ owner });
  await make.downloadKey({ game: many, user_id: reader.id, account_id: reader.id });
  for (let n = 0; n < 31; n++) await make.upload({ game: many, filename: `part-${n}.zip` });
  const mine = await signInBrowser(reader);
  await mine.get(GAMES);
  expect(mine.words).toContain('part-29.zip');
  expect(mine.words).not.toContain('part-30.zip');
  expect(mine.words).toContain('Only the first 30 files are listed.');
});

test('an unclaimed key is redeemed once, by its text or its download URL', async () => {
  const { id, key } = await make.downloadKey({ game });
  expect((await redeem(`https://store.example/dl/${key}`)).location).toBe(GAMES);
  await browser.follow();
  expect(browser.words).toContain(`${game.title} is now in your games.`);
  expect(await sql('SELECT user_id FROM download_keys WHERE id = $1', [id])).toEqual([
    { user_id: player.id },
  ]);
  await redeem(key);
  await browser.follow();
  expect(browser.words).toContain(`${game.title} was already in your games.`);
  const other = await signInBrowser(await make.user());
  expect((await redeem(key, other)).status).toBe(404);
  expect(other.words).toContain('This key isn’t valid, or another account already has it.');
  expect(await sql('SELECT user_id FROM download_keys WHERE id = $1', [id])).toEqual([
    { user_id: player.id },
  ]);
});

test('a key of a game that the player owns asks first, and stays unclaimed until the player says so', async () => {
  const mine = await make.game({ owner, title: 'Owned <already>' });
  await make.purchase({ games: [mine], user_id: player.id });
  const { id, key } = await make.downloadKey({ game: mine });
  const owners = () => sql('SELECT user_id FROM download_keys WHERE id = $1', [id]);
  expect((await redeem(key)).status).toBe(200);
  expect(browser.words).toMatch(/^You already own Owned <already>\. Redeem this key, too\?/);
  expect(await owners()).toEqual([{ user_id: null }]);
  await browser.submit(REDEEM);
  await browser.follow();
  expect(browser.words).toContain('Owned <already> is now in your games.');
  expect(await owners()).toEqual([{ user_id: player.id }]);
});

test.each([
  ['unknown', () => Promise.resolve({ key: 'no-such-key' })],
  ['revoked', () => make.downloadKey({ game, revoked_at: '2026-01-01T00:00:00Z' })],
  [
    'owned through a verified email address',
    async () => {
      await make.user({ emails: [{ email: 'holder@example.com', verified: true }] });
      return make.downloadKey({ game, email: 'Holder@example.com' });
    },
  ],
])('rejects a key that is %s', async (_, find) => {
  const as = await signInBrowser(await make.user());
  expect((await redeem((await find()).key, as)).status).toBe(404);
});

test('a key of a purchase is claimed after a refund that has begun', async () => {
  const as = await signInBrowser(await make.user());
  const purchase = await make.purchase({ games: [game] });
  const { id, key } = await make.downloadKey({ game, purchase_id: purchase.id });
  const { query, commit } = await holdLocks(
    `SELECT FROM purchases WHERE id = ${purchase.id} FOR NO KEY UPDATE`,
  );
  const response = redeem(key, as);
  await untilBlocked();
  await query(`SELECT FROM download_keys WHERE id = ${id} FOR UPDATE NOWAIT`);
  await commit();
  expect((await response).location).toBe(GAMES);
});

test('limits failed attempts at keys like those at passwords', async () => {
  await lengthenWaits();
  const as = await signInBrowser(await make.user());
  const statuses: number[] = [];
  for (let n = 0; n < 7; n++) statuses.push((await redeem(`guess-${n}`, as)).status);
  expect(statuses).toEqual([404, 404, 404, 404, 404, 429, 429]);
  expect(as.page.headers.get('retry-after')).toMatch(/^\d+$/);
});

describe('a bundle in the library', () => {
  let reader: Actor;
  let mine: Browser;
  let games: { id: number; title: string }[];
  let bundle: { id: number; title: string };

  beforeAll(async () => {
    reader = await make.user({ emails: [{ email: 'reader@example.com', verified: true }] });
    games = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        make.game({
          owner,
          title: i === 7 ? 'Odd & <one>' : `Bundled ${i}`,
          visibility: 'private',
          min_price: 100,
        }),
      ),
    );
    bundle = await make.bundle({ owner, games, title: 'Thirty games' });
    const sold = { bundle_id: bundle.id, purchase_type: 'bundle', amount: 1000 };
    const bought = await make.purchase({ ...sold, games, email: 'reader@example.com' });
    await make.downloadKey({
      game: games[3]!,
      purchase_id: bought.id,
      user_id: reader.id,
      key: 'claimed-key',
    });
    mine = await signInBrowser(reader);
  });

  const path = () => `${GAMES}/bundles/${bundle.id}`;

  test('is one row with its number of games, also after a claim', async () => {
    await mine.get(GAMES);
    expect(mine.words).toContain('Thirty games');
    expect(mine.words).toContain('Bundle of 30 games by');
    expect(mine.words).not.toContain('Bundled');
    expect(mine.words).not.toContain('claimed-key');
    expect(mine.page.text).toContain(`href="${path()}"`);
  });

  test('has a page of its games with search, whose downloads work at once', async () => {
    const { id } = await make.upload({ game: games[7]!, external_url: 'https://files.example.com/odd.zip' });
    await mine.get(path());
    expect(mine.words).toContain('Bundled 0');
    expect(mine.page.text.match(/class="card owned"/g)).toHaveLength(24);
    await mine.get(`${path()}?page=2`);
    expect(mine.page.text.match(/class="card owned"/g)).toHaveLength(6);
    await mine.get(`${path()}?search=ODD`);
    expect(mine.words).toContain('Odd & <one>');
    expect(mine.words).not.toContain('Bundled');
    expect(mine.page.text).toContain(`${GAMES}/downloads/${id}`);
    await mine.get(`${GAMES}/downloads/${id}`);
    expect(mine.page.location).toBe('https://files.example.com/odd.zip');
    await mine.get(`${path()}?search=nothing`);
    expect(mine.words).toContain('No game’s title contains “nothing”.');
    expect(await sql('SELECT FROM download_keys WHERE user_id = $1', [reader.id])).toHaveLength(1);
  });

  test('is not shown to others, nor after a refund, whose kept keys are rows again', async () => {
    await browser.get(path());
    expect(browser.page.status).toBe(404);
    await sql(`UPDATE purchases SET status = 'refunded' WHERE bundle_id = $1`, [bundle.id]);
    await mine.get(path());
    expect(mine.page.status).toBe(404);
    await mine.get(GAMES);
    expect(mine.words).not.toContain('Thirty games');
    expect(mine.words).toContain('claimed-key');
  });
});
