import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashPassword } from '../src/accounts/sign-in/password-hash';
import { Settings } from '../src/config/settings';
import { demoRecords, SMALL_STORE } from '../src/importing/demo';
import { ndjsonOf } from '../src/importing/demo-file';
import { loadDemoStore } from '../src/importing/demo-store';
import { greeting } from '../src/process/greeting';
import { Browser } from './support/browser';
import { importDirectly } from './support/importing';
import { Actor, make, send, sql, theApp, useStore } from './support/store';

useStore();

type JsonObject = Record<string, unknown>;

const all = (options: Parameters<typeof demoRecords>[0] = {}) => [...demoRecords(options)];
const textOf = (options: Parameters<typeof demoRecords>[0] = {}) =>
  Buffer.concat([...ndjsonOf(demoRecords(options))]).toString();

test('npm start prints an account of an empty store that can be signed in to, as long as its password is that one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-demo-'));
  const load = () => loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  const demo = await load();
  const { username, password, api_key } = demo!;
  const printed = greeting('http://here', demo, true);
  expect(printed).toContain('Ctrl-C stops it and its database.');
  expect(greeting('http://here', demo, false)).toContain('Ctrl-C stops it.');
  expect(printed).toContain(api_key);
  expect(printed).toContain(`To sign in at http://here/login: ${username}, with the password ${password}`);
  expect((await new Browser().signIn(username, password)).status).toBe(303);
  expect(await load()).toEqual(demo);
  await sql('UPDATE users SET password_hash = $1 WHERE username = $2', [await hashPassword('x'), username]);
  const { password: _, ...others } = demo!;
  expect(await load()).toEqual(others);
  expect(greeting('http://here', others, true)).not.toContain('password');
  rmSync(folder, { recursive: true });
}, 60_000);

test('the same options make the same store, another seed another one', () => {
  expect(textOf()).toBe(textOf());
  expect(textOf({ seed: 2 })).not.toBe(textOf());
});

test('every count is kept', () => {
  const wanted = { users: 50, games: 60, purchases: 70, download_keys: 80, collections: 9, builds: 100 };
  const counts: Record<string, number> = {};
  for (const { type } of all({ ...wanted, collection_size: 12, large_collection: 55, api_keys: 4 }))
    counts[type as string] = (counts[type as string] ?? 0) + 1;
  expect(counts).toEqual({
    user: 50,
    game: 60,
    purchase: 70,
    download_key: 80,
    collection: 10,
    build: 100,
    api_key: 5,
    oauth_application: 1,
  });
  const sizes = all({ ...wanted, collection_size: 12, large_collection: 55 })
    .filter(({ type }) => type === 'collection')
    .map(({ games }) => (games as unknown[]).length);
  expect(sizes).toEqual([...Array<number>(9).fill(12), 55]);
});

test('what cannot be is refused', () => {
  expect(() => all({ games: 3, collection_size: 4 })).toThrow(RangeError);
  expect(() => all({ users: 2 })).toThrow(RangeError);
});

test('the small store has something of everything', async () => {
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

test('no live key follows from the seed unless it is asked for', () => {
  const live = all().filter(({ type, revoked_at }) => type === 'api_key' && !revoked_at);
  expect(live).toEqual([]);
});

test('addresses are nobody’s', () => {
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

test('the API description shows games, keys, sales and ownership as the demo store has them', async () => {
  await importDirectly(all({ api_key: 'the-key-of-the-demo' }));
  const buyer = new Actor(2, 'azure-bison', await make.key({ owner: { id: 2 } }));
  const { paths } = JSON.parse((await send('GET', '/openapi.json')).text) as {
    paths: Record<
      string,
      { get: { responses: Record<string, { content: Record<string, { example: unknown }> }> } }
    >;
  };
  const exampleOf = (path: string) => paths[path]!.get.responses['200']!.content['application/json']!.example;
  const ask = async (path: string) => (await buyer.get(path)).body;
  expect(await ask('/games/1')).toEqual(exampleOf('/games/{game_id}'));
  expect(await ask('/games/1/ownership')).toEqual(exampleOf('/games/{game_id}/ownership'));
  const { owned_keys } = (await ask('/profile/owned-keys')) as { owned_keys: unknown[] };
  const example = exampleOf('/profile/owned-keys') as { owned_keys: unknown[] };
  expect(owned_keys).toContainEqual(example.owned_keys[0]);
  const seller = new Actor(1, 'ash-beetle', await make.key({ owner: { id: 1 } }));
  const { sales } = (await seller.get('/games/1/sales')).body as { sales: unknown[] };
  expect(sales).toContainEqual((exampleOf('/games/{game_id}/sales') as { sales: unknown[] }).sales[0]);
});
