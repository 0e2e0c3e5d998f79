import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { Browser, signInBrowser, PASSWORD, withPassword, withoutFormToken } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor, anonymous } from '../support/actor';
import { baseUrl, logged, openApp, theApp, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { holdLocks, untilBlocked } from '../support/locks';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';

useStore({ FILES_DIR: '/nonexistent', OPERATOR_TOKEN });

let owner: Actor;
let player: Actor;
let game: { id: number; title: string };
let upload: { id: number };
let key: { id: number; key: string };
// The name of the page's path.
const SIGN_IN = /^\/login\?return_to=[\w-]{16}$/;
const noKey = failure(404, 'invalid download key');

beforeAll(async () => {
  ({ owner } = await actors());
  player = await make.user();
  game = await make.game({ owner, title: 'Bright <Harbor>', min_price: 500, visibility: 'private' });
  upload = await make.upload({
    game,
    filename: 'harbor-linux.zip',
    traits: ['p_linux'],
    size: 1_234_567,
    file_key: 'a/b.zip',
  });
  await make.upload({
    game,
    filename: 'harbor-windows.zip',
    traits: ['p_windows'],
    size: 99,
    file_key: 'a/c.zip',
    position: 5,
  });
});
beforeEach(async () => {
  key = await make.downloadKey({ game });
});

const path = (text = key.key) => `/download/${text}`;
const stored = async (id = key.id) =>
  (await sql('SELECT user_id, downloads FROM download_keys WHERE id = $1', [id]))[0];
const claimed = (by: Actor) => sql('UPDATE download_keys SET user_id = $2 WHERE id = $1', [key.id, by.id]);

test('anyone with the link sees the game and its files, those for the own platform first', async () => {
  const browser = new Browser({ 'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)' });
  const { status, headers } = await browser.get(path());
  expect(status).toBe(200);
  expect(browser.words).toContain(`Bright <Harbor> by ${owner.username}`);
  expect(browser.words).toMatch(
    /harbor-windows\.zip Windows · 99 bytes · .* harbor-linux\.zip Linux · 1\.2 MB · /,
  );
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex, nofollow',
  });
  expect(await stored()).toEqual({ user_id: null, downloads: 0 });
});

test('programs get JSON, which lists all files of a private game', async () => {
  const { status, body, headers } = await send('GET', path());
  expect(status).toBe(200);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(body).toMatchObject({
    download_key: { id: key.id, game_id: game.id, claimed: false },
    game: { id: game.id, title: game.title, user: { id: owner.id } },
    uploads: [{ id: upload.id }, { filename: 'harbor-windows.zip' }],
  });
  expect(JSON.stringify(body)).not.toContain(key.key);
  expect((await fetch(baseUrl() + path(), { method: 'HEAD' })).status).toBe(200);
});

test('one visit counts one download, however many files and previews', async () => {
  const counts = async () => {
    await theApp().get(DownloadCounts).flush();
    const [of] = await sql<{ downloads_count: number }>('SELECT downloads_count FROM games WHERE id = $1', [
      game.id,
    ]);
    return [of!.downloads_count, (await stored())!.downloads];
  };
  const [before] = (await counts()) as [number];
  const browser = new Browser();
  await browser.get(path());
  for (const id of [upload.id, upload.id, upload.id + 1]) {
    const { status, location } = await browser.submit(`${path()}/files/${id}`);
    expect([status, location]).toEqual([303, expect.stringMatching(/^http.*\/files\/[\w.-]+\/harbor-/)]);
    await browser.get(path());
  }
  await new Browser().get(path());
  expect(await counts()).toEqual([before + 1, 1]);
  const other = new Browser();
  await other.get(path());
  await other.submit(`${path()}/files/${upload.id}`);
  expect(await counts()).toEqual([before + 2, 2]);
});

test('a file of another game and a form of another site are rejected', async () => {
  const foreign = await make.upload({ game: await make.game({ owner, min_price: 500 }) });
  const browser = new Browser();
  await browser.get(path());
  const form = browser.formFields(`${path()}/files/${upload.id}`);
  expect((await browser.post(`${path()}/files/${foreign.id}`, form)).status).toBe(404);
  expect((await browser.post(`${path()}/files/${upload.id}`, {})).status).toBe(403);
  const crossSite = { 'sec-fetch-site': 'cross-site' };
  expect((await browser.post(`${path()}/files/${upload.id}`, form, crossSite)).status).toBe(403);
  const { headers } = await browser.get(path());
  // Without a referrer, browsers send this origin with a form.
  const opaque = { origin: 'null', 'sec-fetch-site': 'same-origin' };
  expect((await browser.post(`${path()}/files/${upload.id}`, form, opaque)).status).toBe(303);
  expect(headers.get('content-security-policy')).toMatch(/form-action 'self' http:\/\/127\.0\.0\.1:\d+;/);
});

test('unknown, revoked and foreign keys are the same 404', async () => {
  const revoked = await make.downloadKey({ game, revoked_at: '2026-01-01T00:00:00Z' });
  await claimed(owner);
  const browser = await signInBrowser(player);
  const pages = [];
  for (const text of ['unknown', '%00', 'x'.repeat(3000), revoked.key, key.key])
    pages.push(withoutFormToken(await browser.get(path(text))));
  expect(pages[0]![0]).toBe(404);
  expect(new Set(pages.map(String)).size).toBe(1);
  expect(browser.page.headers.get('referrer-policy')).toBe('no-referrer');
  for (const text of ['unknown', revoked.key]) expect(await anonymous.get(path(text))).toEqual(noKey);
  const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
  expect(await send('GET', path(), { headers: { cookie } })).toMatchObject(noKey);
});

test('unknown, revoked and foreign keys need the same statements', async () => {
  const revoked = await make.downloadKey({ game, revoked_at: '2026-01-01T00:00:00Z' });
  await claimed(owner);
  const browser = await signInBrowser(player);
  const statementsFor = (text: string, visitor: Browser) => recordStatements(() => visitor.get(path(text)));
  for (const [visitor, keys] of [
    [new Browser(), [revoked.key]],
    [browser, [revoked.key, key.key]],
  ] as const) {
    const unknown = await statementsFor('unknown', visitor);
    for (const text of keys) expect(await statementsFor(text, visitor)).toEqual(unknown);
  }
});

test('a key of an account opens for its session, and asks others to sign in', async () => {
  await claimed(player);
  expect((await new Browser().get(path())).location).toMatch(SIGN_IN);
  expect(await anonymous.get(path())).toEqual(failure(401, 'authentication required'));
  const browser = await signInBrowser(player);
  await browser.get(path());
  expect(browser.words).toContain('This game is in your library');
  expect((await browser.submit(`${path()}/files/${upload.id}`)).status).toBe(303);
  const { status, text } = await send('GET', path(), {
    headers: { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') },
  });
  expect([status, text]).toEqual([200, expect.stringContaining('"claimed":true')]);
});

test('no URL on the way through the sign-in page contains the key, in each of two tabs', async () => {
  await withPassword(player);
  const other = await make.downloadKey({ game });
  await claimed(player);
  await sql('UPDATE download_keys SET user_id = $2 WHERE id = $1', [other.id, player.id]);
  const browser = new Browser();
  const [first, second] = [
    (await browser.get(path())).location!,
    (await browser.get(path(other.key))).location!,
  ];
  for (const [tab, text] of [
    [first, key.key],
    [second, other.key],
  ] as const) {
    expect(tab).toMatch(SIGN_IN);
    await browser.get(tab);
    expect(browser.page.text.match(/(?:href|action)="[^"]*"/g)!.join()).not.toContain(text);
    await browser.submit('/login', { username: player.username, password: 'wrong' });
    expect(browser.page.text.match(/(?:href|action)="[^"]*"/g)!.join()).not.toContain(text);
  }
  await browser.get(first);
  await browser.submit('/login', { username: player.username, password: PASSWORD });
  expect(browser.page.location).toBe(path());
  // The other tab, and Back in this one.
  expect((await browser.get(second)).location).toBe(path(other.key));
  expect((await browser.get(first)).location).toBe(path());
});

test('a path with a key in the URL of the sign-in page is in no URL of its links', async () => {
  const browser = new Browser();
  for (const secret of [path(), path().toUpperCase(), '/links/token']) {
    await browser.get(`/login?return_to=${encodeURIComponent(secret)}`);
    expect(browser.formFields('/login').return_to).toBe(secret);
    expect(browser.page.text).toMatch(/href="\/forgot-password\?return_to=[\w-]{16}"/);
  }
});

test('the cookie with the paths of keys is bounded', async () => {
  const browser = new Browser();
  const ask = (text: string) => browser.get(`/login?return_to=${encodeURIComponent(path(text))}`);
  for (const text of ['1', '2', '3', '4', '5', '6', 'x'.repeat(1500), 'y'.repeat(3000)]) await ask(text);
  expect(browser.cookies.get('gamewharf_secret_paths')).toBe('');
  await ask('x'.repeat(1500));
  await ask('short');
  expect(browser.cookies.get('gamewharf_secret_paths')!.split('&')).toHaveLength(2);
});

test('the key of an account that verified the buyer is not unclaimed', async () => {
  const email = 'harbor@example.com';
  await make.user({ emails: [{ email, verified: true }] });
  const sold = await make.downloadKey({
    game,
    purchase_id: (await make.purchase({ games: [game], email })).id,
  });
  expect(await anonymous.get(path(sold.key))).toEqual(failure(401, 'authentication required'));
});

test('a signed-in player adds the game to the library once', async () => {
  const visitor = new Browser();
  await visitor.get(path());
  const { location } = await visitor.submit(`${path()}/claim`);
  expect(location).toMatch(SIGN_IN);
  const reader = await make.user();
  const browser = await signInBrowser(reader);
  await browser.get(path());
  await browser.submit(`${path()}/claim`);
  await browser.follow();
  expect(browser.words).toContain('Bright <Harbor> is now in your library.');
  expect(await stored()).toMatchObject({ user_id: reader.id });
  // Another key for the same game gives them nothing.
  key = await make.downloadKey({ game });
  await browser.get(path());
  await browser.submit(`${path()}/claim`);
  expect(browser.words).toContain('You already own Bright <Harbor>. Use this key, too?');
  expect(await stored()).toMatchObject({ user_id: null });
  await browser.submit(`${path()}/claim`);
  expect(browser.page.status).toBe(303);
  expect(await stored()).toMatchObject({ user_id: reader.id });
});

test.each([
  ['revoked', 'revoked_at = now()', 404, 'This key doesn’t exist, or it was already revoked.'],
  ['claimed by another account', 'user_id = OWNER', 409, 'Another account already has this key.'],
])('a key that is %s meanwhile is not added to the library', async (_, change, status, words) => {
  const browser = await signInBrowser(player);
  await browser.get(path());
  const { query, commit } = await holdLocks(`SELECT FROM download_keys WHERE id = ${key.id} FOR UPDATE`);
  const claim = browser.submit(`${path()}/claim`, { again: 'true' });
  await untilBlocked();
  await query(`UPDATE download_keys SET ${change.replace('OWNER', String(owner.id))} WHERE id = ${key.id}`);
  await commit();
  expect((await claim).status).toBe(status);
  expect(browser.words).toContain(words);
});

test('a key of a bundle lists the other games, and a refund closes its page', async () => {
  const other = await make.game({ owner, title: 'Second <game>' });
  const { body } = await send('POST', '/operator/purchases', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      game_id: [game.id, other.id],
      email: 'b@example.com',
      currency: 'USD',
      amount: 900,
    }),
  });
  const { purchase, download_keys } = body as {
    purchase: { id: number };
    download_keys: { key: string; url: string }[];
  };
  const browser = new Browser();
  await browser.get(new URL(download_keys[0]!.url).pathname);
  expect(browser.words).toContain('Other games of this purchase');
  expect(browser.words).toContain('Second <game>');
  // The seller of one game must not get the files of another seller's.
  expect(browser.page.text).not.toContain(download_keys[1]!.key);
  await send('POST', `/operator/purchases/${purchase.id}/refund`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  expect((await browser.get(path(download_keys[0]!.key))).status).toBe(404);
});

test('failed lookups are limited by IP address and network, with the same response for every key', async () => {
  const app = await openApp({ RATE_LIMIT: 'misses=3/100s' });
  const base = await app.getUrl();
  const statuses = async (text: string) => (await fetch(base + path(text))).status;
  expect([
    await statuses(key.key),
    await statuses(key.key),
    await statuses(key.key),
    await statuses(key.key),
  ]).toEqual([200, 200, 200, 200]);
  for (let i = 0; i < 3; i++) expect(await statuses(`unknown-${i}`)).toBe(404);
  expect([await statuses('unknown-3'), await statuses(key.key)]).toEqual([429, 429]);
  const page = await fetch(base + path(), { headers: { accept: 'text/html' } });
  expect([page.status, page.headers.get('referrer-policy')]).toEqual([429, 'no-referrer']);
});

test('KEY_PAGES=all opens claimed keys for everyone, and off removes the routes', async () => {
  await claimed(player);
  const all = await openApp({ KEY_PAGES: 'all' });
  const browser = new Browser({}, () => '');
  expect((await browser.get(`${await all.getUrl()}${path()}`)).status).toBe(200);
  expect(browser.words).not.toContain('Add to your library');
  const off = await openApp({ KEY_PAGES: 'off', OPERATOR_TOKEN });
  const url = await off.getUrl();
  for (const method of ['GET', 'POST', 'OPTIONS'])
    expect((await fetch(url + path(), { method })).status).toBe(404);
  const { download_keys } = (await (
    await fetch(`${url}/operator/purchases`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: new URLSearchParams({
        game_id: String(game.id),
        email: 'c@example.com',
        currency: 'USD',
        amount: '0',
      }),
    })
  ).json()) as { download_keys: { url: null }[] };
  expect(download_keys[0]!.url).toBeNull();
});

test('no key is in the log', () => {
  expect(logged.join('')).not.toContain(key.key);
});
