import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashPassword } from '../../src/auth/sign-in/password-hash';
import { Settings } from '../../src/platform/config/settings';
import { demoRecords } from '../../src/dev/demo/demo';
import { toNdjson } from '../../src/dev/demo/demo-file';
import { SMALL_STORE } from '../../src/dev/demo/demo-options';
import { loadDemoStore } from '../../src/dev/demo/demo-store';
import { greeting } from '../../src/dev/greeting';
import { Browser } from '../support/browser';
import { importDirectly } from '../support/importing';
import { Actor, anonymous } from '../support/actor';
import { baseUrl, LOW_COST, theApp, theClock, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

const files = mkdtempSync(join(tmpdir(), 'gamewharf-demo-files-'));
useStore({ FILES_DIR: files });
afterAll(() => rmSync(files, { recursive: true }));

type JsonObject = Record<string, unknown>;

const all = (options: Parameters<typeof demoRecords>[0] = {}) => [...demoRecords(options)];
const demoText = (options: Parameters<typeof demoRecords>[0] = {}) =>
  Buffer.concat([...toNdjson(demoRecords(options))]).toString();

test('npm start prints an account of an empty store as long as its password works', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-demo-'));
  const load = () => loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  const demo = await load();
  const { username, password, api_key } = demo!;
  const printed = greeting('http://here', {
    demo,
    hasOwnDatabase: true,
    isEmpty: false,
    setupCode: undefined,
  });
  expect(printed).toContain('Press Ctrl-C to stop the service and its database.');
  const empty = greeting('http://here', {
    demo: undefined,
    hasOwnDatabase: false,
    isEmpty: true,
    setupCode: 'A-B',
  });
  expect(empty).toContain('To set up the store in a browser, open http://here/setup and enter the code A-B');
  expect(empty).toContain('Press Ctrl-C to stop the service.');
  expect(empty.match(/^ {2}.*$/gm)).toEqual([
    '  gamewharf users create me --developer',
    '  gamewharf games create --user me --title "My game" --price 4.99',
    '  gamewharf sell --game me/my-game --to player@example.com',
  ]);
  expect(printed).toContain(api_key);
  expect(printed).toContain(`To sign in at http://here/login, use ${username} and the password ${password}`);
  expect(printed).toContain('/uploads/1/download" --location --output game.zip');
  expect((await new Browser().signIn(username, password)).status).toBe(303);
  expect(await load()).toEqual(demo);
  await sql('UPDATE users SET password_hash = $1 WHERE username = $2', [
    await hashPassword('x', LOW_COST),
    username,
  ]);
  const { password: _, ...others } = demo!;
  expect(await load()).toEqual(others);
  expect(
    greeting('http://here', { demo: others, hasOwnDatabase: true, isEmpty: false, setupCode: undefined }),
  ).not.toContain('password');
  rmSync(folder, { recursive: true });
  // The next tests import records with the same IDs.
  await sql('TRUNCATE users, purchases RESTART IDENTITY CASCADE');
});

test('npm start serves its cover images at whatever URL it listens on', async () => {
  const settings = { ...theApp().get(Settings), DATA_DIR: mkdtempSync(join(tmpdir(), 'gamewharf-demo-')) };
  const covers = async () =>
    (await sql<{ cover_url: string }>('SELECT cover_url FROM games ORDER BY id')).map(
      ({ cover_url }) => cover_url,
    );
  await loadDemoStore(settings as Settings, 'http://127.0.0.1:1');
  await sql(`UPDATE games SET cover_url = 'https://images.example.com/own.png' WHERE id = 2`);
  await loadDemoStore(settings as Settings, baseUrl());
  const [first, own, ...others] = await covers();
  expect(own).toBe('https://images.example.com/own.png');
  for (const url of new Set([first!, ...others])) {
    expect(url).toMatch(`${baseUrl()}/assets/cover-`);
    const response = await fetch(url);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'image/svg+xml; charset=utf-8',
    ]);
    expect(await response.text()).toMatch(/^<svg /);
  }
  rmSync(settings.DATA_DIR, { recursive: true });
  await sql('TRUNCATE users, purchases RESTART IDENTITY CASCADE');
});

test('the first game of npm start has a zip file per platform and a demo', async () => {
  const { api_key } = (await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: files } as Settings))!;
  const seller = new Actor(1, 'ash-beetle', api_key);
  const { uploads } = (await seller.get('/games/1/uploads')).body as { uploads: Listed[] };
  expect(uploads.map(({ id, traits }) => [id, traits])).toEqual([
    [1, ['p_windows']],
    [2, ['p_linux']],
    [3, ['p_osx']],
    [4, ['demo', 'p_windows', 'p_linux', 'p_osx']],
  ]);
  for (const { id, size, md5_hash } of uploads) {
    const { headers } = await send('GET', `/uploads/${id}/download`, { headers: seller.headers });
    const zip = Buffer.from(await (await fetch(headers.get('location')!)).arrayBuffer());
    expect([zip.length, createHash('md5').update(zip).digest('hex')]).toEqual([size, md5_hash]);
    expect(zip.toString('latin1')).toMatch(/^PK\x03\x04.+README\.txtBrave Arcade\n.+PK\x05\x06/s);
  }
  const other = await make.user();
  expect(await other.get('/uploads/1/download')).toMatchObject({
    status: 403,
    body: { errors: ['you must buy this game to download'] },
  });
  await sql('TRUNCATE users, purchases RESTART IDENTITY CASCADE');
});

interface Listed {
  id: number;
  traits: string[];
  size: number;
  md5_hash: string;
}

test('equal options create equal stores, and another seed creates another one', () => {
  expect(demoText()).toBe(demoText());
  expect(demoText({ seed: 2 })).not.toBe(demoText());
});

test('every time is before the day of the store, sales follow publications, and builds are recent', () => {
  const now = Date.UTC(2031, 5, 15, 12);
  const records = all({ now, recent_sales: 100 }) as Record<string, string | number>[];
  const today = now - (now % 86_400_000);
  const times = records.flatMap((record) =>
    Object.entries(record)
      .filter(([name]) => name.endsWith('_at'))
      .map(([, time]) => Date.parse(String(time))),
  );
  expect(Math.max(...times)).toBeLessThanOrEqual(now);
  expect(Math.min(...times)).toBeGreaterThan(now - 1001 * 86_400_000);
  const newest = new Map(
    records
      .filter(({ type }) => type === 'build')
      .map(({ game_id, created_at }) => [game_id, Date.parse(String(created_at))]),
  );
  for (const time of newest.values()) expect(today - time).toBeLessThan(31 * 86_400_000);
  const games = new Map(records.filter(({ type }) => type === 'game').map((game) => [game.id, game]));
  for (const { type, game_id, created_at } of records)
    if (type === 'purchase' && game_id !== undefined && games.get(game_id)?.published_at !== undefined)
      expect([game_id, created_at! >= games.get(game_id)!.published_at!]).toEqual([game_id, true]);
});

test('most sales are at the price of the game', () => {
  const records = all({ recent_sales: 100 }) as Record<string, string | number>[];
  const price = new Map(
    records.flatMap(({ type, id, min_price }) => (type === 'game' ? [[id, min_price]] : [])),
  );
  for (const id of [1, 2]) {
    const sales = records.filter(
      ({ type, game_id, currency }) => type === 'purchase' && game_id === id && currency === 'USD',
    );
    const exact = sales.filter(({ amount }) => amount === price.get(id));
    expect([id, exact.length > sales.length / 2]).toEqual([id, true]);
  }
});

test('creates the requested number of every record type', () => {
  const wanted = { users: 50, games: 60, purchases: 70, download_keys: 80, collections: 9, builds: 100 };
  const counts: Record<string, number> = {};
  for (const { type } of all({ ...wanted, collection_size: 12 }))
    counts[type as string] = (counts[type as string] ?? 0) + 1;
  expect(counts).toEqual({
    user: 50,
    game: 60,
    bundle: 1,
    purchase: 70,
    download_key: 80,
    collection: 9,
    build: 100,
    api_key: 1,
    oauth_application: 1,
  });
  const sizes = all({ ...wanted, collection_size: 12 })
    .filter(({ type }) => type === 'collection')
    .map(({ games }) => (games as unknown[]).length);
  expect(sizes).toEqual(Array<number>(9).fill(12));
});

test('rejects impossible options', () => {
  expect(() => all({ games: 3, collection_size: 4 })).toThrow(RangeError);
  expect(() => all({ users: 2 })).toThrow(RangeError);
});

test('the small store has a record of every type', async () => {
  await importDirectly(all({ api_key: 'the-key-of-the-demo' }));
  const shown = async (condition: string) => (await sql(`SELECT 1 FROM ${condition} LIMIT 1`)).length === 1;
  for (const condition of [
    'user_emails WHERE NOT verified',
    'user_emails WHERE verified GROUP BY user_id HAVING count(*) > 1',
    'users WHERE display_name IS NULL',
    `games WHERE visibility = 'private'`,
    `games WHERE visibility = 'restricted'`,
    'games WHERE published_at IS NULL',
    'games GROUP BY user_id HAVING count(*) > 3',
    'game_admins',
    'bundle_games GROUP BY bundle_id HAVING count(*) = 8',
    'purchases WHERE bundle_id IS NOT NULL',
    'game_earnings GROUP BY game_id HAVING count(*) > 1',
    `purchases WHERE purchase_type = 'bundle'`,
    'purchases WHERE user_id IS NULL',
    `purchases WHERE status <> 'complete'`,
    'download_keys WHERE user_id IS NOT NULL',
    'download_keys WHERE purchase_id IS NULL',
    'download_keys WHERE revoked_at IS NOT NULL',
    'download_keys k JOIN purchases p ON p.id = k.purchase_id JOIN user_emails e ON e.email = lower(p.email)',
    'collections WHERE private',
    'collections WHERE description IS NOT NULL',
    `collections WHERE layout = 'list'`,
    'collection_admins',
    'collection_games WHERE blurb IS NOT NULL',
    `builds WHERE state = 'failed'`,
    `builds WHERE state = 'processing' OR state = 'started'`,
    `builds WHERE game_id = 1 AND channel_name = 'windows' AND state = 'completed' AND user_version IS NOT NULL`,
    'api_keys WHERE revoked_at IS NULL AND user_id = 1',
    'api_keys WHERE revoked_at IS NOT NULL',
    'oauth_applications',
  ])
    expect([condition, await shown(condition)]).toEqual([condition, true]);
  expect(await sql('SELECT count(*) AS count FROM users')).toEqual([{ count: SMALL_STORE.users }]);
});

test('creates no live key from the seed unless one is requested', () => {
  const live = all().filter(({ type, revoked_at }) => type === 'api_key' && !revoked_at);
  expect(live).toEqual([]);
});

test('uses only reserved domains', () => {
  const hosts = new Set(
    all({ users: 300, purchases: 300 }).flatMap((record: JsonObject) =>
      [...JSON.stringify(record).matchAll(/@([\w.-]+)|https?:\/\/([\w.-]+)/g)].map(([, a, b]) =>
        (a ?? b)!.toLowerCase(),
      ),
    ),
  );
  expect([...hosts].filter((host) => !/^(127\.0\.0\.1|(.*\.)?example\.(com|org|net))$/.test(host))).toEqual(
    [],
  );
});

test('the API description shows what the demo store returns', async () => {
  const api_key = 'the-key-of-the-demo';
  await importDirectly(all({ api_key }));
  await make.key({ owner: { id: 1 }, text: 'key-of-the-seller' });
  const seller = new Actor(1, 'ash-beetle', 'key-of-the-seller');
  const buyer = new Actor(2, 'azure-bison', await make.key({ owner: { id: 2 } }));
  const email = 'azure-bison@example.net';
  const asked: Record<string, () => Promise<{ body: unknown }>> = {
    credentialsInfo: () => seller.get('/credentials/info'),
    profileProfile: () => buyer.get('/profile'),
    profileProfileGames: () => seller.get('/profile/games'),
    ownershipOwnedKeys: () => buyer.get('/profile/owned-keys'),
    bundlesOwned: () => buyer.get('/profile/owned-bundles'),
    bundlesGames: () => buyer.get('/bundles/1/bundle-games'),
    gamesGame: () => buyer.get('/games/1'),
    ownershipOwns: () => buyer.get('/games/1/ownership'),
    gameSalesPage: () => seller.get('/games/1/sales'),
    purchasesDownloadKey: () => seller.get('/games/1/download_keys', { email }),
    purchasesPurchasesOf: () => seller.get('/games/1/purchases', { email }),
    collectionsList: () => seller.get('/profile/collections'),
    collectionsOne: () => seller.get('/collections/1'),
    collectionGamesPage: () => seller.get('/collections/1/collection-games'),
    collectionsCreate: () => seller.post('/collections', { title: 'Games for a train ride' }),
    collectionsUpdate: () => seller.post('/collections/1', { title: 'Games for a train ride' }),
    collectionGamesAdd: () => seller.post('/collections/1/add-game', { game_id: 1 }),
    collectionGamesUpdate: () =>
      seller.post('/collections/1/collection-games/1', { blurb: '<p>The best of its year.</p>' }),
    wharfLatest: () => anonymous.get('/wharf/latest', { game_id: 1, channel_name: 'linux' }),
    legacyCredentialsInfo: () => seller.get('/api/1/key/credentials/info'),
    legacyMe: () => buyer.get('/api/1/key/me'),
    legacyMyGames: () => seller.get('/api/1/key/my-games'),
    legacyMyOwnedKeys: () => buyer.get('/api/1/key/my-owned-keys'),
    legacyGame: () => buyer.get('/api/1/key/game/1'),
    legacyDownloadKey: () => seller.get('/api/1/key/game/1/download_keys', { email }),
    legacyPurchasesOf: () => seller.get('/api/1/key/game/1/purchases', { email }),
    // Last, because it adds a key.
    bundlesClaim: () => buyer.post('/bundles/1/claim-game', { game_id: 2 }),
  };
  const responses: Record<string, unknown> = {};
  for (const [operation, ask] of Object.entries(asked)) responses[operation] = shown((await ask()).body);
  // `EXAMPLES=write npx jest test/operator/demo.test.ts -t description` regenerates the file, for the next start of the
  // service.
  if (process.env.EXAMPLES === 'write') {
    writeFileSync(EXAMPLES, `${JSON.stringify(responses, null, 2)}\n`);
    return;
  }
  expect(JSON.parse(readFileSync(EXAMPLES, 'utf8'))).toEqual(responses);
  const description = (await send('GET', '/openapi.json')).text;
  for (const response of Object.values(responses)) expect(description).toContain(JSON.stringify(response));
  expect(description).not.toContain('"source":"source"');
});

const EXAMPLES = 'src/platform/openapi/assets/example-responses.json';

/** The first record of each list, with one fixed time for everything just created. */
const shown = (response: unknown): unknown =>
  JSON.parse(
    JSON.stringify(response, (_, value: unknown) => {
      if (Array.isArray(value) && typeof value[0] === 'object') return value.slice(0, 1) as unknown;
      if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d[T ][\d:]{8}Z?$/.test(value)) return value;
      const age = theClock().now() - Date.parse(value.endsWith('Z') ? value : `${value}Z`);
      return Math.abs(age) < 3_600_000
        ? value.replace(/\d[\d:-]*([T ])[\d:]+/, '2026-03-01$112:00:00')
        : value;
    }),
  );
