import { Readable } from 'node:stream';
import { Client } from 'pg';
import { ImportService } from '../../src/operator/import/import.service';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import {
  databaseUrl,
  allRows,
  importDirectly,
  importLines,
  ndjson,
  OPERATOR_TOKEN,
  importErrors,
  storedSales,
  expectedSales,
  sendSmall,
} from '../support/importing';
import { bundle, game, purchase, user, downloadKey, collection } from '../support/records';
import { FaultyProxy } from '../support/proxy';
import { Actor, anonymous } from '../support/actor';
import { openApp, PEPPER, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { sql } from '../support/sql';
import { holdLocks } from '../support/locks';
import { until } from '../support/time';

useStore({ OPERATOR_TOKEN });

const deleted = (type: string, id: number) => ({ type, id, deleted: true });

const build = { type: 'build', id: 1, game_id: 1, channel_name: 'windows', user_version: '1.0' };
const apiKey = { type: 'api_key', key: 'a-key-of-somebody', user_id: 1 };
const application = {
  type: 'oauth_application',
  client_id: 'companion',
  user_id: 1,
  name: 'Companion',
  redirect_uris: ['http://127.0.0.1:8080/callback'],
  scopes: ['profile:me'],
};
const refunded = { type: 'purchase', id: 1, status: 'refunded' };
const ids = async (table: string) =>
  (await sql<{ id: number }>(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id);

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections, builds, api_keys CASCADE');
});

describe('partial records', () => {
  test('a new record reports every missing required field', async () => {
    await importLines(user(1));
    expect(
      await importErrors(
        { type: 'user', id: 2 },
        { type: 'game', id: 1, title: 'Half a game' },
        { type: 'purchase', id: 7, game_id: 1 },
        { type: 'api_key', key: 'new-key' },
        { type: 'oauth_application', client_id: 'x', name: 'X' },
      ),
    ).toEqual([
      'line 1: user 2: username is required',
      'line 2: game 1: slug is required',
      'line 2: game 1: user_id is required',
      'line 3: purchase 7: amount is required',
      'line 3: purchase 7: currency is required',
      'line 3: purchase 7: email is required',
      'line 3: purchase 7: source is required',
      'line 4: api_key: user_id is required',
      'line 5: oauth_application x: redirect_uris is required',
      'line 5: oauth_application x: scopes is required',
      'line 5: oauth_application x: user_id is required',
    ]);
  });

  test('an unknown field doesn’t hide the missing required fields of a new record', async () => {
    const lines = [
      { type: 'game', id: 1, name: 'x' },
      { type: 'purchase', reference: 'a', buyer: 'x' },
      user(2),
    ];
    const expected = [
      'line 1: game 1: unknown field name',
      'line 1: game 1: slug is required',
      'line 1: game 1: title is required',
      'line 1: game 1: user_id is required',
      'line 2: purchase: unknown field buyer',
      'line 2: purchase: amount is required',
      'line 2: purchase: currency is required',
      'line 2: purchase: email is required',
      'line 2: purchase: game_id is required',
      'line 2: purchase: source is required',
    ];
    expect(await importErrors(...lines)).toEqual(expected);
    await expect(importDirectly(lines)).rejects.toMatchObject({ lines: expected });
  });

  test('an invalid value doesn’t hide the missing required fields of a new record, and is reported once', async () => {
    await importLines(user(1));
    const lines = [
      { type: 'game', id: 1, slug: 'no slug' },
      { type: 'purchase', id: 7, email: 'x', currency: null, game_id: 1, amount: 1 },
      { type: 'upload', id: 1, file: {} },
      // The ID may be meant for a stored user, which would need no other field.
      { type: 'user', id: 'x' },
      { type: 'user', id: 1, gamer: 'x' },
    ];
    expect(await importErrors(...lines)).toEqual([
      'line 1: game 1: slug must consist of letters, digits, _, . and -',
      'line 1: game 1: title is required',
      'line 1: game 1: user_id is required',
      'line 2: purchase 7: email must be an email address',
      'line 2: purchase 7: currency is required',
      'line 2: purchase 7: source is required',
      'line 3: upload 1: file must have exactly one of key, url',
      'line 3: upload 1: file.size is required',
      'line 3: upload 1: filename is required',
      'line 3: upload 1: game_id is required',
      'line 4: user: id must be an integer',
      'line 5: user 1: gamer must be true or false',
    ]);
  });

  test('rejects null for a required field, of an existing record too', async () => {
    await importLines(user(1));
    expect(await importErrors({ type: 'user', id: 1, username: null })).toEqual([
      'line 1: user 1: username is required',
    ]);
  });

  test('keeps the stored value of an absent field, for every record type', async () => {
    const store = [
      user(1, { display_name: 'Leaf', emails: [{ email: 'leaf@example.com', verified: true }] }),
      game(1, { short_text: 'short' }),
      game(2),
      purchase(1, { game_id: [1, 2], sale_rate: 20 }),
      downloadKey(1, { email: 'a@example.com' }),
      collection(1, { games: [{ game_id: 2 }, { game_id: 1 }] }),
      build,
      apiKey,
      application,
    ];
    await importLines(...store);
    const before = await allRows();
    const keys = ['type', 'id', 'key', 'client_id'];
    const nothing = store.map((record) =>
      Object.fromEntries(
        Object.entries(record).filter(([name]) => keys.includes(name) && !(name === 'key' && 'id' in record)),
      ),
    );
    for (const line of await importLines(...nothing))
      expect(line).toMatch(/ 0 new, 0 changed, \d unchanged$/);
    expect(await allRows()).toEqual(before);

    expect(
      await importLines(
        { type: 'user', id: 1, gamer: false },
        { type: 'game', id: 1, title: 'New title' },
        { type: 'purchase', id: 1, amount: 301 },
        { type: 'download_key', id: 1, downloads: 3 },
        { type: 'collection', id: 1, title: 'Better' },
        { type: 'build', id: 1, state: 'failed' },
        { type: 'api_key', key: 'a-key-of-somebody', label: 'mine' },
        { type: 'oauth_application', client_id: 'companion', name: 'Friend' },
      ),
    ).toEqual(
      [
        'users',
        'games',
        'purchases',
        'download_keys',
        'collections',
        'builds',
        'api_keys',
        'oauth_applications',
      ].map((table) => `${table} 0 new, 1 changed, 0 unchanged`),
    );
    expect(await sql('SELECT username, display_name, gamer FROM users')).toEqual([
      { username: 'user1', display_name: 'Leaf', gamer: false },
    ]);
    expect(await sql('SELECT user_id, slug, title, short_text FROM games WHERE id = 1')).toEqual([
      { user_id: 1, slug: 'game-1', title: 'New title', short_text: 'short' },
    ]);
    expect(
      await sql('SELECT email, source, currency, amount, sale_rate, purchase_type FROM purchases'),
    ).toEqual([
      {
        email: 'buyer@example.com',
        source: 'card',
        currency: 'USD',
        amount: 301,
        sale_rate: 20,
        purchase_type: 'bundle',
      },
    ]);
    expect(await storedSales()).toMatchObject([
      { id: 1, purchases_count: 1, earnings: { USD: 151 } },
      { id: 2, purchases_count: 1, earnings: { USD: 150 } },
    ]);
    expect(await sql('SELECT redirect_uris, name FROM oauth_applications')).toEqual([
      { redirect_uris: application.redirect_uris, name: 'Friend' },
    ]);
  });

  test('a stored purchase of a bundle or of several games stays one', async () => {
    const sale = { game_id: undefined, bundle_id: 1 };
    await importLines(
      user(1),
      game(1),
      game(2),
      bundle(1, { game_ids: [2] }),
      purchase(1, { game_id: [1, 2] }),
      purchase(2, sale),
      purchase(3, { game_id: [1] }),
    );
    const change = (id: number, fields: object) => ({
      type: 'purchase',
      id,
      purchase_type: 'sub_product',
      ...fields,
    });
    const problem = 'purchase_type must be bundle for a bundle or several games';
    expect(await importErrors(change(1, {}), change(2, { amount: 1 }), change(3, {}))).toEqual([
      `line 1: purchase 1: ${problem}`,
      `line 2: purchase 2: ${problem}`,
    ]);
    await importLines(change(1, { game_id: 2 }), change(2, { bundle_id: null }), change(3, {}));
  });

  test('looks up a slug among the games of the stored owner', async () => {
    await importLines(user(1), user(2), game(1), game(2, { slug: 'taken' }), game(3, { user_id: 2 }));
    expect(
      await importErrors({ type: 'game', id: 1, slug: 'taken' }, { type: 'game', id: 3, slug: 'taken' }),
    ).toEqual(['line 1: game 1: the slug is taken by game 2']);
  });

  test('two games can swap slugs', async () => {
    await importLines(user(1), game(1, { slug: 'one' }), game(2, { slug: 'two' }));
    await importLines({ type: 'game', id: 1, slug: 'two' }, { type: 'game', id: 2, slug: 'one' });
    expect(await sql('SELECT id, slug FROM games ORDER BY id')).toEqual([
      { id: 1, slug: 'two' },
      { id: 2, slug: 'one' },
    ]);
  });
});

describe('deleted records', () => {
  test.each<[what: string, line: object, problem: string]>([
    ['a number', { type: 'user', id: 1, deleted: 1 }, 'user 1: deleted must be true'],
    ['a string', { type: 'user', id: 1, deleted: 'true' }, 'user 1: deleted must be true'],
    ['false', { type: 'user', id: 1, deleted: false }, 'user 1: deleted must be true'],
    ['no ID', { type: 'user', deleted: true }, 'user: id is required'],
    ['an invalid ID', { type: 'user', id: 'x', deleted: true }, 'user: id must be an integer'],
    ['a key by its ID', { type: 'api_key', id: 1, deleted: true }, 'api_key: key is required'],
    [
      'an additional field',
      { type: 'user', id: 1, deleted: true, username: 'x' },
      'user 1: username must be absent where deleted is true',
    ],
  ])('%s', async (_, line, problem) => {
    const problems = await importErrors(line);
    expect(problems).toContain(`line 1: ${problem}`);
  });

  test('rejects the deletion of a record on which something of value depends, and says what', async () => {
    await importLines(
      ...[1, 2, 3, 4].map((id) => user(id)),
      game(1),
      game(2),
      game(3),
      purchase(1, { game_id: [1, 3], user_id: 2 }),
      purchase(2),
      downloadKey(1, { game_id: 2, user_id: 4 }),
      downloadKey(2, { purchase_id: 2 }),
      collection(1, { user_id: 3 }),
    );
    await importLines({ type: 'purchase', id: 2, status: 'refunded' });
    const erase = 'erase the person instead, with gamewharf users erase';
    const hide = 'make the game private instead, or delete those first';
    expect(await importErrors(...[1, 2, 3, 4].map((id) => deleted('user', id)))).toEqual([
      `line 1: user 1: has 3 games: ${erase}`,
      `line 2: user 2: has 1 purchase: ${erase}`,
      `line 3: user 3: has 1 collection: ${erase}`,
      `line 4: user 4: has 1 download key: ${erase}`,
    ]);
    expect(await importErrors(...[1, 2, 3].map((id) => deleted('game', id)))).toEqual([
      `line 1: game 1: has 2 purchases and 1 download key: ${hide}`,
      `line 2: game 2: has 1 download key: ${hide}`,
      `line 3: game 3: has 1 purchase: ${hide}`,
    ]);
    expect(await importErrors(deleted('purchase', 1), deleted('purchase', 2))).toEqual([
      'line 1: purchase 1: is complete: refund it first',
      'line 2: purchase 2: has 1 active download key: revoke or delete them first',
    ]);
  });

  test('deletes a record with its dependents, and nothing the second time', async () => {
    await importLines(
      user(1),
      user(2, { emails: [{ email: 'a@example.com', verified: true }] }),
      game(1, { admins: [2] }),
      game(2),
      build,
      collection(1, {
        games: [
          { game_id: 1, user_id: 2 },
          { game_id: 2, user_id: 2 },
        ],
        admins: [2],
      }),
      { ...apiKey, key: 'a-key-of-two', user_id: 2 },
      { ...application, user_id: 2 },
      apiKey,
    );
    const owner = new Actor(1, 'user1', 'a-key-of-somebody');
    const friend = new Actor(2, 'user2', 'a-key-of-two');
    expect((await friend.get('/profile')).status).toBe(200);
    expect(await importLines(deleted('game', 1), deleted('user', 2))).toEqual([
      'users 0 new, 0 changed, 0 unchanged, 1 deleted',
      'games 0 new, 0 changed, 0 unchanged, 1 deleted',
    ]);
    expect(await friend.get('/profile')).toEqual(failure(401, 'invalid key'));
    expect([await ids('users'), await ids('games'), await ids('builds'), await ids('api_keys')]).toEqual([
      [1],
      [2],
      [],
      [expect.any(Number)],
    ]);
    expect(await sql('SELECT games_count FROM collections')).toEqual([{ games_count: 1 }]);
    expect(await sql('SELECT game_id, user_id FROM collection_games')).toEqual([{ game_id: 2, user_id: 1 }]);
    for (const table of ['user_emails', 'game_admins', 'collection_admins', 'oauth_applications'])
      expect([table, await sql(`SELECT * FROM ${table}`)]).toEqual([table, []]);
    expect(await anonymous.get('/wharf/latest', { game_id: 1, channel_name: 'windows' })).toEqual(
      failure(404, 'invalid game'),
    );
    expect(await importLines(deleted('game', 1), deleted('user', 2))).toEqual([
      'users 0 new, 0 changed, 1 unchanged, 0 deleted',
      'games 0 new, 0 changed, 1 unchanged, 0 deleted',
    ]);
    expect((await owner.get('/profile')).status).toBe(200);
  });

  test('changes and deletes API keys that are stored under a previous pepper', async () => {
    await importLines(user(1), apiKey);
    const rotated = await openApp({
      API_KEY_PEPPER: 'the pepper that replaced the first one',
      API_KEY_PEPPER_PREVIOUS: PEPPER,
      OPERATOR_TOKEN,
    });
    const post = async (line: object) => {
      const url = `${await rotated.getUrl()}/operator/import`;
      const headers = {
        authorization: `Bearer ${OPERATOR_TOKEN}`,
        'content-type': 'application/x-ndjson',
      };
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(line) });
      return ((await response.json()) as { summary: string[] }).summary;
    };
    expect(await post({ ...apiKey, label: 'mine' })).toEqual(['api_keys 0 new, 1 changed, 0 unchanged']);
    // An earlier version stored a second row for each pepper.
    await importLines(apiKey);
    const remove = Readable.from([
      Buffer.from(JSON.stringify({ ...apiKey, user_id: undefined, deleted: true })),
    ]);
    expect(await rotated.get(ImportService).run(remove, {})).toMatchObject({ api_keys: { deleted: 1 } });
    expect(await sql('SELECT FROM api_keys')).toEqual([]);
    await rotated.close();
  });

  test('keeps an API key if the previous peppers contain the current one', async () => {
    await importLines(user(1), apiKey);
    const stored = await sql('SELECT id, key_hash FROM api_keys');
    const repeated = await openApp({ API_KEY_PEPPER: PEPPER, API_KEY_PEPPER_PREVIOUS: PEPPER });
    const again = Readable.from([Buffer.from(JSON.stringify(apiKey))]);
    await repeated.get(ImportService).run(again, {});
    expect(await sql('SELECT id, key_hash FROM api_keys')).toEqual(stored);
    await repeated.close();
  });

  test('deletes keys, apps, collections and builds', async () => {
    const onLinux = { ...build, channel_name: 'linux' };
    await importLines(user(1), game(1), onLinux, { ...onLinux, id: 2 }, apiKey, application);
    await importLines(collection(1, { games: [{ game_id: 1 }] }), downloadKey(1));
    expect(
      await importLines(
        { type: 'api_key', key: 'a-key-of-somebody', deleted: true },
        { type: 'oauth_application', client_id: 'companion', deleted: true },
        deleted('build', 2),
        deleted('collection', 1),
        deleted('download_key', 1),
      ),
    ).toEqual(
      ['download_keys', 'collections', 'builds', 'api_keys', 'oauth_applications'].map(
        (table) => `${table} 0 new, 0 changed, 0 unchanged, 1 deleted`,
      ),
    );
    expect(await ids('builds')).toEqual([1]);
    expect(await sql('SELECT FROM collection_games')).toEqual([]);
    expect(await new Actor(1, 'user1', 'a-key-of-somebody').get('/profile')).toEqual(
      failure(401, 'invalid key'),
    );
  });

  test('deletes a refunded purchase with its revoked keys, then its game, even in one stream', async () => {
    await importLines(user(1), game(1), purchase(1), downloadKey(1, { purchase_id: 1 }));
    expect(await importErrors(deleted('purchase', 1))).toEqual([
      'line 1: purchase 1: is complete: refund it first',
      'line 1: purchase 1: has 1 active download key: revoke or delete them first',
    ]);
    await importLines(refunded, { type: 'download_key', id: 1, revoked_at: '2024-01-01T00:00:00Z' });
    expect(await storedSales()).toMatchObject([{ id: 1, purchases_count: 0, earnings: null }]);
    await importLines(deleted('game', 1), deleted('purchase', 1), deleted('user', 1));
    expect([
      await ids('users'),
      await ids('games'),
      await ids('purchases'),
      await ids('download_keys'),
    ]).toEqual([[], [], [], []]);
  });

  test('updates counts and earnings', async () => {
    await importLines(user(1), game(1), game(2), purchase(1, { game_id: [1, 2] }), purchase(2));
    await importLines(refunded);
    await importLines(deleted('purchase', 1));
    expect(await storedSales()).toEqual(await expectedSales());
    expect(await storedSales()).toMatchObject([
      { id: 1, purchases_count: 1, earnings: { USD: 500 } },
      { id: 2, purchases_count: 0, earnings: null },
    ]);
  });

  test('rejects a stream that also writes or references the record', async () => {
    await importLines(user(1), game(1), game(2));
    expect(
      await importErrors(
        deleted('game', 1),
        { ...build, id: 5 },
        { type: 'game', id: 2, title: 'T' },
        deleted('game', 2),
        deleted('game', 9),
        deleted('game', 9),
      ),
    ).toEqual([
      'line 2: build 5: game 1 is deleted on line 1',
      'line 4: game 2: the id is also on line 3',
      'line 6: game 9: the id is also on line 5',
    ]);
  });
});

describe('IDs that the service assigned', () => {
  beforeEach(async () => {
    await importLines(user(1), user(2), game(1), game(2), purchase(3_000_000), collection(3_000_000));
  });

  const sell = async (fields: object = {}) => {
    const { status, body } = await send('POST', '/operator/purchases', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        game_id: 1,
        email: 'kate@example.com',
        currency: 'USD',
        amount: 500,
        ...fields,
      }),
    });
    expect(status).toBe(200);
    return body as { purchase: { id: number }; download_keys: [{ id: number; key: string }] };
  };

  test('an imported record cannot change the buyer or games of a sale', async () => {
    const { id } = (await sell({ user_id: 2 })).purchase;
    const kate = { email: 'kate@example.com', user_id: 2 };
    const problem = `purchase ${id}: was created by this service for another buyer or game`;
    for (const fields of [
      { ...kate, email: 'bob@example.com' },
      { ...kate, user_id: 1 },
      { ...kate, user_id: null },
      { ...kate, game_id: 2 },
      { ...kate, game_id: [1, 2] },
    ])
      expect(await importErrors(purchase(5), purchase(id, fields))).toEqual([`line 2: ${problem}`]);
    expect(await importErrors({ type: 'purchase', id, email: 'bob@example.com' })).toEqual([
      `line 1: ${problem}`,
    ]);

    const corrected = { email: 'Kate@Example.com', amount: 700, source: 'card' };
    expect(await importLines(purchase(id, corrected))).toEqual(['purchases 0 new, 1 changed, 0 unchanged']);
    expect(await storedSales()).toEqual(await expectedSales());
    await importLines({ type: 'purchase', id, status: 'refunded' });
  });

  test('an imported record cannot change the text or game of a key, even of an imported one', async () => {
    const { key, id } = (await sell()).download_keys[0];
    const as = 'was created by this service as another key or for another game';
    for (const fields of [{ key: 'other' }, { key, game_id: 2 }])
      expect(await importErrors(downloadKey(id, fields))).toEqual([`line 1: download_key ${id}: ${as}`]);
    await importLines(downloadKey(id, { key, downloads: 5, user_id: 2 }));

    await importLines(purchase(4_000_000, { with_key: true }));
    const [made] = await sql<{ id: number }>('SELECT id FROM download_keys WHERE purchase_id = 4000000');
    expect(await importErrors(downloadKey(made!.id))).toEqual([`line 1: download_key ${made!.id}: ${as}`]);
  });

  test('an imported record cannot change the owner of a collection', async () => {
    await importLines(apiKey);
    const { body } = await new Actor(1, 'owner', apiKey.key).post('/collections', {
      title: 'Mine',
      private: true,
    });
    const { id } = (body as { collection: { id: number } }).collection;
    // Written in parallel to the request; `importErrors` compares all tables.
    await until(async () => (await sql('SELECT FROM api_keys WHERE last_used_at IS NOT NULL')).length === 1);
    expect(await importErrors(collection(id, { user_id: 2 }))).toEqual([
      `line 1: collection ${id}: was created by this service for another user`,
    ]);
    await importLines(collection(id, { title: 'Renamed' }));
    await importLines(deleted('collection', id));
    await importLines(collection(id, { user_id: 2 }));
  });

  test('distinguishes purchases imported without an ID from those with another ID, and matches them by reference', async () => {
    const { id: _, ...sale } = purchase(1, { reference: 'order-1' });
    await importLines(sale);
    const [{ id }] = (await sql(`SELECT purchase_id AS id FROM purchase_references`)) as [{ id: number }];
    expect(await importErrors(purchase(id, { email: 'bob@example.com' }))).toEqual([
      `line 1: purchase ${id}: was created by this service for another buyer or game`,
    ]);
    await importLines({ type: 'purchase', reference: 'order-1', email: 'bob@example.com' });
  });

  test('corrects every field of a record with an imported ID', async () => {
    await importLines(purchase(3_000_000, { game_id: 2, email: 'bob@example.com', user_id: 2 }));
    await importLines(collection(3_000_000, { user_id: 2 }), downloadKey(3_000_000));
    await importLines(downloadKey(3_000_000, { key: 'other', game_id: 2 }));
  });
});

describe('references of purchases', () => {
  const { id: _, ...sale } = purchase(1);
  const sold = (reference: string, fields: object = {}) => ({ ...sale, reference, ...fields });
  const stored = () =>
    sql<{ id: number; reference: string; amount: number }>(
      `SELECT p.id, r.reference, p.amount FROM purchases p LEFT JOIN purchase_references r ON r.purchase_id = p.id
       ORDER BY r.reference`,
    );

  test('invalid records', async () => {
    await importLines(user(1), game(1), purchase(1, { reference: 'taken' }));
    expect(
      await importErrors(
        { ...sale },
        sold('x'.repeat(201)),
        purchase(2, { reference: 'taken' }),
        sold('twice'),
        sold('twice'),
        { type: 'purchase', reference: 'new', amount: 3 },
        sold('key', { with_key: 'yes' }),
      ),
    ).toEqual([
      'line 1: purchase: id is required',
      'line 2: purchase: reference must be at most 200 characters',
      'line 3: purchase 2: the reference is taken by purchase 1',
      'line 5: purchase: the reference is also on line 4',
      'line 6: purchase: currency is required',
      'line 6: purchase: email is required',
      'line 6: purchase: game_id is required',
      'line 6: purchase: source is required',
      'line 7: purchase: with_key must be true or false',
    ]);
  });

  test('repeated stored references', async () => {
    await importLines(user(1), game(1), purchase(1, { reference: 'taken' }));
    expect(await importErrors(sold('taken'), sold('taken'))).toEqual([
      'line 2: purchase 1: the reference is also on line 1',
    ]);
    expect(await importErrors(purchase(1), sold('taken'), sold('taken'))).toEqual([
      'line 2: purchase 1: the id is also on line 1',
      'line 3: purchase 1: the id is also on line 1',
      'line 3: purchase 1: the reference is also on line 2',
    ]);
  });

  test('finds a purchase without an ID by its reference, or assigns an ID', async () => {
    await importLines(user(1), game(1));
    expect(await importLines(sold('one'), sold('two'))).toEqual(['purchases 2 new, 0 changed, 0 unchanged']);
    const before = await stored();
    expect(before).toMatchObject([{ reference: 'one' }, { reference: 'two' }]);
    expect(await importLines(sold('one'), { type: 'purchase', reference: 'two', amount: 7 })).toEqual([
      'purchases 0 new, 1 changed, 1 unchanged',
    ]);
    expect(await stored()).toEqual([before[0], { ...before[1], amount: 7 }]);
    expect(await storedSales()).toMatchObject([{ purchases_count: 2, earnings: { USD: 507 } }]);
    await importLines({ type: 'purchase', id: before[0]!.id, reference: 'another' });
    expect(await stored()).toMatchObject([{ id: before[0]!.id, reference: 'another' }, { reference: 'two' }]);
    await importLines({ type: 'purchase', id: before[0]!.id, reference: null });
    expect(await sql('SELECT reference FROM purchase_references')).toEqual([{ reference: 'two' }]);
  });

  test('with_key creates a key once for each game without one, for complete purchases only', async () => {
    const keys = () =>
      sql<{ game_id: number; key: string }>(
        'SELECT game_id, key, account_id, purchase_email FROM download_keys ORDER BY purchase_id, game_id',
      );
    await importLines(user(1), game(1), game(2));
    const bundle = sold('bundle', { game_id: [1, 2], user_id: 1, with_key: true });
    await importLines(bundle, sold('waits', { status: 'pending', with_key: true }), sold('without'));
    const made = await keys();
    const key = expect.stringMatching(/^gwdl_[\w-]{24}$/);
    const buyer = { account_id: 1, purchase_email: 'buyer@example.com' };
    expect(made).toEqual([
      { game_id: 1, key, ...buyer },
      { game_id: 2, key, ...buyer },
    ]);
    expect(new Set(made.map(({ key }) => key)).size).toBe(2);
    expect(await importLines(bundle)).toEqual(['purchases 0 new, 0 changed, 1 unchanged']);
    expect(await keys()).toEqual(made);
    expect(
      await importLines({ type: 'purchase', reference: 'waits', status: 'complete', with_key: true }),
    ).toEqual(['purchases 0 new, 1 changed, 0 unchanged']);
    expect(await keys()).toHaveLength(3);
  });
});

describe('Idempotency-Key', () => {
  const sendOnce = (key: string, ...lines: object[]) => sendSmall(lines, { 'idempotency-key': key });

  test('rejects an invalid key and one used with other records', async () => {
    expect((await sendOnce('é', user(1))).status).toBe(400);
    expect((await sendOnce('one', user(1))).status).toBe(200);
    expect(await sendOnce('one', user(2))).toEqual(
      failure(400, 'Idempotency-Key was used with other parameters'),
    );
    expect(await ids('users')).toEqual([1]);
  });

  test('repeats the response of the first request without a change, also to concurrent requests', async () => {
    await importLines(user(1), game(1));
    const responses = await Promise.all(Array.from({ length: 5 }, () => sendOnce('sale', purchase(1))));
    expect(responses.map(({ body }) => body)).toEqual(
      responses.map(() => expect.objectContaining({ summary: ['purchases 1 new, 0 changed, 0 unchanged'] })),
    );
    await importLines({ type: 'purchase', id: 1, status: 'refunded' });
    expect(await sendOnce('sale', purchase(1))).toEqual(responses[0]);
    expect(await storedSales()).toMatchObject([{ purchases_count: 0 }]);
  });

  test('can be reused after a rejected request', async () => {
    const first = await sendOnce('late', game(1));
    expect(first).toEqual(failure(400, 'line 1: game 1: user 1 does not exist'));
    await importLines(user(1));
    expect((await sendOnce('late', game(1))).status).toBe(200);
  });

  test('can be reused after a 503', async () => {
    await importLines(user(1), game(1));
    const { release } = await holdLocks('SELECT FROM games FOR UPDATE');
    expect((await sendOnce('busy', purchase(1))).status).toBe(503);
    await release();
    for (let i = 0; i < 2; i++)
      expect(await sendOnce('busy', purchase(1))).toMatchObject({
        body: { types: { purchases: { new: 1 } } },
      });
    expect(await storedSales()).toMatchObject([{ purchases_count: 1 }]);
  });

  test('returns a response lost after the commit, on another replica too', async () => {
    await importLines(user(1), game(1));
    const url = await databaseUrl();
    const proxy = await FaultyProxy.before(url);
    const replica = await openApp({ OPERATOR_TOKEN, DATABASE_URL: proxy.through(url) });
    try {
      proxy.withholdsAfter = 'COMMIT\0';
      const first = fetch(`${await replica.getUrl()}/operator/import`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${OPERATOR_TOKEN}`,
          'content-type': 'application/x-ndjson',
          'idempotency-key': 'lost',
        },
        body: ndjson([purchase(1)]),
      });
      await until(async () => (await ids('purchases')).length === 1);
      await proxy.vanish();
      expect((await first).status).toBe(503);
      expect(await sendOnce('lost', purchase(1))).toMatchObject({
        body: { types: { purchases: { new: 1 } } },
      });
      expect(await storedSales()).toMatchObject([{ purchases_count: 1 }]);
    } finally {
      await proxy.vanish();
      await gracefulStop(replica);
    }
  });

  test('repeats the response of a large import, unless the records differ', async () => {
    const users = Array.from({ length: 1001 }, (_, i) => user(i + 1));
    const first = await sendOnce('large', ...users);
    expect(first).toMatchObject({ body: { types: { users: { new: 1001 } } } });
    await importLines(user(1, { display_name: 'Changed since' }));
    const before = await allRows();
    const used = failure(400, 'Idempotency-Key was used with other parameters');
    expect(await sendOnce('large', ...users, user(1002))).toEqual(used);
    expect(await sendOnce('large', user(1))).toEqual(used);
    expect(await sendOnce('large', ...users)).toEqual(first);
    expect(await allRows()).toEqual(before);
  });
});

describe('a game changes owner while its new owner is renamed', () => {
  const WAITING = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  const names = () => sql<object>('SELECT id, user_id, owner_name FROM games ORDER BY id');
  const handedOver = [
    { id: 1, user_id: 2, owner_name: 'renamed' },
    { id: 2, user_id: 2, owner_name: 'renamed' },
  ];
  /** Another transaction that began with `first`; `second` is its next step, which must not wait for the import. */
  async function beside(first: string, second: string, ...records: object[]) {
    await importLines(user(1), user(2), game(1), game(2, { user_id: 2 }));
    const other = new Client({ connectionString: await databaseUrl() });
    await other.connect();
    try {
      await other.query(`BEGIN; SET LOCAL lock_timeout = '200ms'; ${first}`);
      const importing = importLines(...records);
      importing.catch(() => undefined);
      await until(async () => (await sql(WAITING)).length > 0);
      await other.query(`${second}; COMMIT`);
      await importing;
    } finally {
      await other.end();
    }
  }

  test('the rename comes first', async () => {
    await beside(
      'SELECT FROM users WHERE id = 2 FOR NO KEY UPDATE',
      `UPDATE users SET username = 'renamed' WHERE id = 2`,
      game(1, { user_id: 2 }),
      game(2, { user_id: 2, title: 'Another' }),
    );
    expect(await names()).toEqual(handedOver);
  });

  test('the change of owner comes first', async () => {
    await beside(
      'SELECT FROM users WHERE id = 2 FOR SHARE; SELECT FROM games WHERE id IN (1, 2) ORDER BY id FOR NO KEY UPDATE',
      'UPDATE games SET user_id = 2 WHERE id = 1',
      user(2, { username: 'renamed' }),
    );
    expect(await names()).toEqual(handedOver);
  });
});
