import { Readable } from 'node:stream';
import { Client } from 'pg';
import { read, type Values } from '../../src/platform/database/statement';
import { connectTo, type ImportQueue, importRecords } from '../../src/operator/import/import-records';
import { cloneDatabase } from '../support/database';
import {
  ADDRESS_OF_COLLECTOR,
  ADMIN_OF_ALL,
  COLLECTIONS,
  COLLECTOR,
  fillLargeStore,
  GAME_OF_CHANNELS,
  GAMES,
  KEYS,
  LONG_COLLECTION,
  NIGHTLY_BUILDS,
  POPULAR_GAME,
  RESELLER,
  RESELLER_ADDRESS,
  USERS,
} from '../support/large-store';
import { declared } from '../support/declared-statements';
import { isPlannedOnce, explainPlan, measureExecution } from '../support/plans';

let client: Client;
let url: string;
let drop: () => Promise<void>;

beforeAll(async () => {
  const database = await cloneDatabase();
  drop = database.drop;
  url = database.direct_url ?? database.url;
  client = new Client({ connectionString: url });
  await client.connect();
  await fillLargeStore(client);
});
afterAll(async () => {
  await client?.end();
  await drop?.();
});

const GAME = 1002;
const KEY_OF_APPLICATION = 1;
const KEY_OF_USER = KEYS;
const NEWEST_BUILD = GAMES + NIGHTLY_BUILDS;
const ownerId = (game: number) => (game % (USERS / 10)) + 1;
const NEWEST = { at: 'infinity', id: Number.MAX_SAFE_INTEGER };
const NEWEST_SALE = { sold_at: 'infinity', purchase_id: Number.MAX_SAFE_INTEGER };
const OLDEST_SALE = { sold_at: '-infinity', purchase_id: 0 };
const A_SALE = { sold_at: '2024-01-05 00:00:00+00', purchase_id: 345600 };
const hashes = (...keys: string[]) =>
  client.query<{ hash: string }>('SELECT sha256(k::bytea)::text AS hash FROM unnest($1::text[]) k', [keys]);

const BUYERS = {
  ...{ game_id: null, since: '-infinity', until: 'infinity' },
  ...{ games_read: 200, sales_per_game: 102, sales: 102, limit: 51 },
};

// The number of pages that each may read if it can return only a few rows.
const LOOKUPS: [string, Values, number][] = [
  ['user', { user_id: 17 }, 5],
  ['known_identity', { issuer: 'https://id.example.com', subject: 'somebody' }, 5],
  ['has_password', { user_id: 17 }, 5],
  ['live_user_of_token', { user_id: 17, api_key_id: 16, generation: 0 }, 10],
  ['editable_games', { user_id: ownerId(GAME) }, 300],
  ['startable_game', { game_id: GAME, user_id: 4999 }, 10],
  ['startable_game', { game_id: GAME, user_id: ADMIN_OF_ALL }, 10],
  ['startable_game', { game_id: POPULAR_GAME, user_id: RESELLER }, 25],
  ['startable_game', { game_id: POPULAR_GAME, user_id: COLLECTOR }, 25],
  ['startable_game', { game_id: POPULAR_GAME, user_id: 4999 }, 60],
  ['game', { id: GAME, user_id: 4999 }, 10],
  ['game', { id: POPULAR_GAME, user_id: RESELLER }, 20],
  ['game', { id: POPULAR_GAME, user_id: 4999 }, 40],
  ['ownership', { game_id: GAME, user_id: 4999, api_key_id: KEY_OF_USER }, 80],
  ['ownership', { game_id: GAME, user_id: 4999, api_key_id: KEY_OF_APPLICATION }, 80],
  ['ownership', { game_id: POPULAR_GAME, user_id: 4999, api_key_id: KEY_OF_USER }, 100],
  ['ownership', { game_id: POPULAR_GAME, user_id: 4999, api_key_id: KEY_OF_APPLICATION }, 80],
  ['ownership', { game_id: POPULAR_GAME, user_id: COLLECTOR, api_key_id: KEY_OF_USER }, 40],
  ['ownership', { game_id: POPULAR_GAME, user_id: RESELLER, api_key_id: KEY_OF_USER }, 40],
  ['ownership_in_game', { game_id: POPULAR_GAME, user_id: 4999 }, 60],
  ['ownership_in_game', { game_id: POPULAR_GAME, user_id: RESELLER }, 30],
  ['owned_keys', { user_id: 1001, limit: 50, offset: 0 }, 80],
  ['owned_keys', { user_id: 1001, limit: 50, offset: 50 }, 20],
  ['owned_keys', { user_id: COLLECTOR, limit: 50, offset: 0 }, 800],
  ['owned_keys', { user_id: RESELLER, limit: 50, offset: 0 }, 800],
  ['download_key_by_key', { game_id: GAME, editor_id: ownerId(GAME), download_key: 'key-1000' }, 20],
  ['download_key_by_key', { game_id: GAME, editor_id: ADMIN_OF_ALL, download_key: 'key-1000' }, 20],
  ['download_key_by_user', { game_id: GAME, editor_id: ownerId(GAME), user_id: 1001 }, 25],
  ['download_key_by_user', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: 1001 }, 30],
  ['download_key_by_email', { game_id: GAME, editor_id: ownerId(GAME), email: 'MAIL1000@example.com' }, 30],
  [
    'download_key_by_email',
    { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: 'MAIL1000@example.com' },
    35,
  ],
  ['download_key_by_user', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: COLLECTOR }, 50],
  ['download_key_by_user', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: RESELLER }, 50],
  [
    'download_key_by_email',
    { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: ADDRESS_OF_COLLECTOR },
    60,
  ],
  ['download_key_by_email', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: RESELLER_ADDRESS }, 60],
  ['purchases_by_user', { game_id: GAME, editor_id: ownerId(GAME), user_id: 1002 }, 40],
  ['purchases_by_user', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: 1002 }, 90],
  ['purchases_by_user', { game_id: GAME, editor_id: ownerId(GAME), user_id: COLLECTOR }, 60],
  ['purchases_by_user', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: COLLECTOR }, 60],
  ['purchases_by_email', { game_id: GAME, editor_id: ownerId(GAME), email: 'MAIL1000@example.com' }, 20],
  [
    'purchases_by_email',
    { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: 'MAIL1000@example.com' },
    30,
  ],
  ['purchases_by_email', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: ADDRESS_OF_COLLECTOR }, 90],
  [
    'game_sales',
    { ...NEWEST_SALE, since: '-infinity', limit: 20, offset: 0, game_id: GAME, user_id: ownerId(GAME) },
    250,
  ],
  // 100,000 sales: any page of them costs the same.
  ...[
    { ...NEWEST_SALE, since: '-infinity', offset: 0 },
    { ...A_SALE, since: '-infinity', offset: 0 },
    { ...NEWEST_SALE, since: '2024-01-05T00:00:00Z', offset: 100 },
  ].map((page): (typeof LOOKUPS)[number] => [
    'game_sales',
    { ...page, limit: 20, game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL },
    500,
  ]),
  ['seller_sale', { seller_id: ownerId(POPULAR_GAME), purchase_id: 11 }, 60],
  // The seller has twenty games, one of them with 100,000 sales.
  ...(['older', 'newer'] as const).flatMap((direction): typeof LOOKUPS => {
    const name = direction === 'older' ? 'seller_sales' : 'seller_sales_before';
    const start = direction === 'older' ? NEWEST_SALE : OLDEST_SALE;
    const all = {
      ...{ user_id: ownerId(POPULAR_GAME), game_id: null, since: '-infinity', until: 'infinity', ...start },
      ...{ currency: null, status: null, source: null, limit: 51 },
    };
    const read = { games_read: 200, sales_per_game: 51 };
    const searched = { games_read: 10_000, sales_per_game: null };
    return [
      [name, { ...all, ...read }, 3000],
      [name, { ...all, ...read, ...A_SALE }, 3000],
      [name, { ...all, ...read, game_id: POPULAR_GAME }, 3000],
      // Rare ones: a part of the sales is searched.
      [name, { ...all, ...searched, status: 'refunded' }, 9000],
      [name, { ...all, ...searched, currency: 'EUR', source: 'bank transfer' }, 9000],
    ];
  }),
  ['seller_game_titles', { seller_id: ownerId(POPULAR_GAME), limit: 201 }, 250],
  ...(['older', 'newer'] as const).flatMap((direction): typeof LOOKUPS => {
    const name = direction === 'older' ? 'seller_buyers' : 'seller_buyers_before';
    const start = direction === 'older' ? NEWEST_SALE : OLDEST_SALE;
    const all = { ...BUYERS, ...start, user_id: ownerId(POPULAR_GAME) };
    return [
      [name, all, 40_000],
      [name, { ...all, ...A_SALE }, 40_000],
      [name, { ...all, game_id: POPULAR_GAME }, 40_000],
      // More sales, because few of their buyers were new.
      [name, { ...all, games_read: 10_000, sales_per_game: null, sales: 408 }, 40_000],
    ];
  }),
  // With thousands of games, the index of the seller's sales is read instead of an entry per game and buyer.
  ['seller_buyers', { ...BUYERS, ...NEWEST_SALE, user_id: ADMIN_OF_ALL }, 2_000_000],
  // Five bundles of 1741 games, of which the seller's are found.
  [
    'seller_sales_of_person',
    { seller_id: ownerId(POPULAR_GAME), account_id: COLLECTOR, email: ADDRESS_OF_COLLECTOR },
    1800,
  ],
  [
    'seller_sales_of_person',
    { seller_id: ownerId(POPULAR_GAME), account_id: null, email: 'mail4@example.com' },
    175,
  ],
  [
    'seller_person_totals',
    { seller_id: ownerId(POPULAR_GAME), account_id: COLLECTOR, email: ADDRESS_OF_COLLECTOR },
    1000,
  ],
  [
    'seller_keys_of_person',
    { seller_id: ownerId(POPULAR_GAME), account_id: RESELLER, email: RESELLER_ADDRESS },
    1750,
  ],
  ['seller_key', { seller_id: ownerId(POPULAR_GAME), key: 'key-1001' }, 20],
  [
    'sales_totals',
    { user_id: ownerId(POPULAR_GAME), game_id: null, summed: 'day', from: '2024-01-01', to: '2026-12-31' },
    1000,
  ],
  [
    'sales_figures',
    {
      ...{ user_id: ownerId(POPULAR_GAME), game_id: null, currency: 'USD' },
      ...{ from: '2024-03-01', to: '2024-03-30', previous_from: '2024-01-30', previous_to: '2024-02-29' },
      ...{ summed: 'day', unit: 'day', summed_for_columns: 'day', days: 30, limit: 26, offset: 0 },
    },
    1000,
  ],
  [
    'recent_sales',
    {
      from: '2024-01-01',
      to: '2024-01-31',
      previous_from: null,
      previous_to: null,
      user_id: ownerId(POPULAR_GAME),
      game_id: null,
    },
    35_000,
  ],
  // The search reads all 100,000 email addresses, and the names of 20,000 buyers.
  ['seller_search', { seller_id: ownerId(POPULAR_GAME), term: 'mail1', id: null }, 250_000],
  ['seller_search', { seller_id: ownerId(POPULAR_GAME), term: '1@example', id: null }, 8000],
  ['seller_search', { seller_id: ownerId(POPULAR_GAME), term: `user${COLLECTOR}`, id: null }, 250_000],
  ['seller_search', { seller_id: ownerId(POPULAR_GAME), term: '11', id: 11 }, 300],
  ['owned_bundles', { user_id: 1001 }, 40],
  ['owned_bundles', { user_id: COLLECTOR }, 350],
  ['bundle_games', { offset: 0, limit: 100, bundle_id: 1, user_id: COLLECTOR }, 900],
  ['bundle_games', { offset: 1700, limit: 100, bundle_id: 1, user_id: COLLECTOR }, 400],
  ['bundle_games', { offset: 0, limit: 100, bundle_id: 2, user_id: 1001 }, 20],
  ['library', { user_id: 1001, offset: 0 }, 350],
  ['library_found', { user_id: 1001, search: 'game 1', by_title: true, offset: 0 }, 800],
  ['library_bundle', { user_id: COLLECTOR, search: 'game 1', offset: 0, bundle_id: 1 }, 20_000],
  ['key_page', { key: 'key-1000' }, 25],
  ['own_account', { user_id: COLLECTOR }, 20],
  ['uploads_of_key', { key: 'key-1000' }, 30],
  ['games_sold_with_key', { key: 'key-1000' }, 10],
  ['owns_game', { game_id: POPULAR_GAME, user_id: RESELLER }, 20],
  [
    'created_keys',
    {
      game_id: GAME,
      user_id: ownerId(GAME),
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      label: null,
      state: null,
      limit: 51,
    },
    15,
  ],
  [
    'created_keys',
    {
      game_id: POPULAR_GAME,
      user_id: ADMIN_OF_ALL,
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      label: null,
      state: null,
      limit: 51,
    },
    350,
  ],
  // None of 120,000 keys has the label: a part of them is searched.
  [
    'created_keys',
    {
      game_id: POPULAR_GAME,
      user_id: ADMIN_OF_ALL,
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      label: 'Press kit',
      state: null,
      limit: 51,
    },
    1000,
  ],
  [
    'created_keys',
    {
      game_id: POPULAR_GAME,
      user_id: ADMIN_OF_ALL,
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      label: null,
      state: 'revoked',
      limit: 51,
    },
    1000,
  ],
  ['created_key_labels', { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL }, 65],
  [
    'created_keys_count',
    { game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL, from: 0, to: Number.MAX_SAFE_INTEGER, label: null },
    1650,
  ],
  ['own_uploads', { game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL, upload_id: null }, 25],
  [
    'pending_file_uploads',
    { game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL, file_upload_id: null, now: '2026-01-01' },
    40,
  ],
  ['channels', { game_id: GAME_OF_CHANNELS, slug: null, owner: null, user_id: ADMIN_OF_ALL }, 1500],
  ['profile_builds', { user_id: ownerId(GAME), state: '', started_build_ids: [], offset: 0, limit: 50 }, 700],
  ['own_game', { id: POPULAR_GAME, user_id: ADMIN_OF_ALL }, 20],
  ['recent_game_sales', { user_id: ADMIN_OF_ALL, game_id: POPULAR_GAME, day: '2024-01-01' }, 50],
  ['games_page', { ...NEWEST, user_id: ownerId(GAME) }, 700],
  ['games_with_keys_page', { ...NEWEST, user_id: ownerId(GAME) }, 450],
  [
    'builds_page',
    { game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL, channel_name: null, before_id: NEWEST_BUILD },
    850,
  ],
  [
    'builds_page',
    {
      game_id: POPULAR_GAME,
      user_id: ADMIN_OF_ALL,
      channel_name: null,
      before_id: NEWEST_BUILD - NIGHTLY_BUILDS / 2,
    },
    850,
  ],
];

test.each(LOOKUPS)('%s %j uses index probes only', async (name, values, most) => {
  const { scanned, pages } = await explainPlan(client, name, values);
  expect(scanned).toEqual([]);
  expect(pages).toBeLessThanOrEqual(most);
});

test('purchases use index probes too if most users have twenty email addresses', async () => {
  await client.query('ALTER TABLE user_emails ALTER user_id SET (n_distinct = -0.05)');
  await client.query('ANALYZE user_emails (user_id)');
  const { pages } = await explainPlan(client, 'purchases_by_user', {
    game_id: POPULAR_GAME,
    editor_id: ADMIN_OF_ALL,
    user_id: COLLECTOR,
  });
  await client.query('ALTER TABLE user_emails ALTER user_id RESET (n_distinct)');
  await client.query('ANALYZE user_emails (user_id)');
  expect(pages).toBeLessThanOrEqual(60);
});

// The most expensive values for each small read.
const COSTLIEST: Record<string, Values[]> = {
  // Tested separately below.
  live_api_keys: [],
  signing_keys: [{}],
  live_user_of_token: [{ user_id: 17, api_key_id: 16, generation: 0 }],
  edited_game: [
    { game_id: null, slug: `game-${GAME}`, owner: `user${ownerId(GAME)}`, user_id: ADMIN_OF_ALL },
    { game_id: POPULAR_GAME, slug: null, owner: null, user_id: ADMIN_OF_ALL },
  ],
  channel: [
    { channel_name: 'nightly', game_id: POPULAR_GAME, slug: null, owner: null, user_id: ADMIN_OF_ALL },
    {
      channel_name: 'channel 7',
      game_id: null,
      slug: `game-${GAME_OF_CHANNELS}`,
      owner: `user${ownerId(GAME_OF_CHANNELS)}`,
      user_id: ADMIN_OF_ALL,
    },
  ],
  few_channels: [
    { game_id: GAME_OF_CHANNELS, slug: null, owner: null, user_id: ADMIN_OF_ALL },
    {
      game_id: null,
      slug: `game-${GAME_OF_CHANNELS}`,
      owner: `user${ownerId(GAME_OF_CHANNELS)}`,
      user_id: ADMIN_OF_ALL,
    },
  ],
  startable_game: [
    { game_id: POPULAR_GAME, user_id: RESELLER },
    { game_id: POPULAR_GAME, user_id: COLLECTOR },
    { game_id: POPULAR_GAME, user_id: 4999 },
  ],
  few_editable_games: [{ user_id: ownerId(GAME) }, { user_id: ADMIN_OF_ALL }],
  game: [{ id: POPULAR_GAME, user_id: 4999 }],
  user: [{ user_id: 17 }],
  download_key_by_key: [{ game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, download_key: 'key-1001' }],
  download_key_by_user: [
    { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: COLLECTOR },
    { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: RESELLER },
  ],
  download_key_by_email: [{ game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: RESELLER_ADDRESS }],
  purchases_by_user: [{ game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: COLLECTOR }],
  purchases_by_email: [{ game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: ADDRESS_OF_COLLECTOR }],
  ownership_in_game: [{ game_id: POPULAR_GAME, user_id: 4999 }],
  ownership: [{ game_id: POPULAR_GAME, user_id: 4999, api_key_id: KEY_OF_USER }],
  uploads: [
    { user_id: 4999, download_key_id: null, game_id: POPULAR_GAME },
    { user_id: 4999, download_key_id: null, game_id: GAME_OF_CHANNELS },
  ],
  upload: [{ upload_id: POPULAR_GAME, user_id: 4999, download_key_id: null }],
  upload_file: [{ user_id: 4999, download_key_id: null, upload_id: POPULAR_GAME }],
  build: [{ user_id: 4999, download_key_id: null, build_id: NEWEST_BUILD }],
  build_file: [{ user_id: 4999, download_key_id: null, file_type: 'signature', build_id: NEWEST_BUILD }],
  game_to_download: [{ user_id: 4999, download_key_id: null, game_id: POPULAR_GAME }],
  collection: [{ id: LONG_COLLECTION, user_id: COLLECTOR }],
  collections_editable: [{ user_id: COLLECTOR }],
  collections_editable_with_game: [{ user_id: COLLECTOR, game_id: 1 }],
  collection_editors: [{ collection_id: LONG_COLLECTION }],
  collection_to_edit: [{ user_id: COLLECTOR, id: LONG_COLLECTION }],
  game_to_collect: [{ game_id: POPULAR_GAME, user_id: 4999 }],
  live_operator_tokens: [{}],
  person_account: [{ user_id: COLLECTOR }],
  person_by_address: [{ address: 'mail1000@example.com' }],
  claimable: [
    { user_id: COLLECTOR, bundle_id: 1, game_id: 1001 },
    { user_id: 4999, bundle_id: 1, game_id: 1001 },
  ],
  claimed_key: [
    { user_id: COLLECTOR, game_id: POPULAR_GAME },
    { user_id: RESELLER, game_id: POPULAR_GAME },
  ],
  sold_bundle: [{ bundle_id: 1 }],
  account_to_sign_in: [{ name: 'mail1000@example.com' }, { name: 'user1000' }],
  own_game: [{ id: POPULAR_GAME, user_id: ADMIN_OF_ALL }],
  title_of_own_game: [{ game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL }],
  newest_build_by_game: [{ game_id: POPULAR_GAME, channel_name: 'nightly' }],
  newest_build_by_target: [{ username: `user${ownerId(GAME)}`, slug: `game-${GAME}`, channel_name: 'linux' }],
  created_keys_game: [{ game_id: POPULAR_GAME, user_id: ADMIN_OF_ALL }],
  sale_message_fields: [
    { subject_id: 10, webhook_user_id: null },
    { subject_id: 10, webhook_user_id: ADMIN_OF_ALL },
  ],
  key_page: [{ key: 'key-1000' }],
  account_link: [{ token_hash: `\\x${'00'.repeat(32)}` }],
  links_are_sent: [{}],
  last_account: [{}],
  link_request_email: [{ subject_id: 1, webhook_user_id: null }],
  file_of_key: [{ key: 'key-1000', upload_id: 1 }],
  owns_game: [
    { game_id: POPULAR_GAME, user_id: RESELLER },
    { game_id: POPULAR_GAME, user_id: COLLECTOR },
  ],
  sale: [{ purchase_id: 10 }],
  sold_games: [{ purchase_id: 10 }],
  has_password: [{ user_id: 17 }],
  known_identity: [{ issuer: 'https://id.example.com', subject: 'somebody' }],
  seller_key: [{ seller_id: ADMIN_OF_ALL, key: 'key-1001' }],
  edited_build: [{ build_id: NEWEST_BUILD, user_id: ADMIN_OF_ALL }],
  edited_build_files: [{ build_id: NEWEST_BUILD, user_id: ADMIN_OF_ALL }],
  // The longest path.
  upgrade_path: [
    {
      user_id: ADMIN_OF_ALL,
      download_key_id: null,
      target_build_id: NEWEST_BUILD,
      build_id: NEWEST_BUILD - 49,
    },
  ],
};

describe('small reads take at most about a millisecond, because they share a connection', () => {
  // The control takes about a millisecond on an idle machine, and longer on a busy one like every statement.
  const CONTROL = read('about_a_millisecond', 'SELECT sum(n) FROM generate_series(1, 8000) AS n');

  test('includes every small read', () => {
    const names = declared().flatMap(({ name, group }) => (group === 'small' ? name : []));
    expect(Object.keys(COSTLIEST).toSorted()).toEqual(names.toSorted());
  });

  test.each(Object.entries(COSTLIEST).flatMap(([name, all]) => all.map((values) => [name, values] as const)))(
    '%s %j',
    async (name, values) => {
      const limit = await measureExecution(client, CONTROL, {});
      const ms = await measureExecution(client, name, values);
      expect(ms).toBeLessThan(limit);
    },
  );
});

// A list of values, or a value that may be null, can make PostgreSQL prefer a new plan for each execution, which takes
// longer than the execution.
describe('a small read is planned once', () => {
  const EXCEPTIONS = new Set([
    // One user of this store administers every game, so the plan for all users expects many.
    'few_editable_games',
    // Used for messages, not for requests.
    'sale_message_fields',
  ]);

  test.each(
    Object.entries(COSTLIEST).flatMap(([name, [values]]) =>
      values && !EXCEPTIONS.has(name) ? [[name, values] as const] : [],
    ),
  )('%s %j', async (name, values) => {
    expect(await isPlannedOnce(client, name, values)).toBe(true);
  });

  test('control: detects a plan for each execution', async () => {
    const games = read(
      'some_games',
      'SELECT id FROM games WHERE id = ANY ($ids::bigint[]) AND $name::text IS NULL',
    );
    expect(await isPlannedOnce(client, games, { ids: [1, 2], name: 'x' })).toBe(false);
  });
});

test('key lookups use index probes, for one and for many', async () => {
  for (const count of [1, 30]) {
    const { rows } = await hashes(...Array.from({ length: count }, (_, i) => String(i + 1)));
    const { scanned, pages } = await explainPlan(client, 'live_api_keys', {
      hashes: rows.map(({ hash }) => `"${hash.replace('\\', '\\\\')}"`),
    });
    expect(scanned).toEqual([]);
    expect(pages).toBeLessThanOrEqual(8 * count);
  }
});

test.each([
  {
    name: 'by user',
    lookup: 'purchases_by_user',
    values: { game_id: GAME, editor_id: ownerId(GAME), user_id: 1002 },
  },
  {
    name: 'by email',
    lookup: 'purchases_by_email',
    values: { game_id: GAME, editor_id: ownerId(GAME), email: 'MAIL1000@example.com' },
  },
])(
  'purchases $name: reads rows of games and purchases, and only indexes of other tables',
  async ({ lookup, values }) => {
    const { tablesRead } = await explainPlan(client, lookup, values);
    expect(tablesRead).toEqual(['games', 'purchases']);
  },
);

test.each([
  {
    name: 'by user',
    lookup: 'download_key_by_user',
    values: { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, user_id: 1001 },
  },
  {
    name: 'by email',
    lookup: 'download_key_by_email',
    values: { game_id: POPULAR_GAME, editor_id: ADMIN_OF_ALL, email: 'MAIL1000@example.com' },
  },
])(
  'keys $name: reads rows of the game, the key and its owner, and only indexes of other tables',
  async ({ lookup, values }) => {
    const { tablesRead } = await explainPlan(client, lookup, values);
    expect(tablesRead).toEqual(['games', 'download_keys', 'users']);
  },
);

const PAGE = { collection_id: 5, user_id: 17, limit: 50 };

test('a page of a collection does not memoize games, because none is repeated', async () => {
  expect(await explainPlan(client, 'collection_games_first_page', PAGE)).toMatchObject({ remembers: false });
});

test('a page of a collection finds its games by index even without statistics on the expression', async () => {
  await client.query('BEGIN');
  const { rows } = await client.query<{ made: string }>(
    `SELECT pg_get_indexdef('games_hash_idx'::regclass) AS made`,
  );
  await client.query('DROP INDEX games_hash_idx');
  await client.query(rows[0]!.made);
  const { scanned, remembers } = await explainPlan(client, 'collection_games_first_page', PAGE);
  await client.query('ROLLBACK');
  expect(scanned).not.toContain('games');
  expect(remembers).toBe(false);
});

describe('deletions scan no table', () => {
  const settings = { DATABASE_URL: '' };
  beforeAll(() => void (settings.DATABASE_URL = url));

  const run = (queue: ImportQueue, lines: Buffer) =>
    importRecords(() => connectTo(settings), Readable.from([lines]), { pepper: Buffer.alloc(0), queue });

  /** Rows read by scans of whole tables. */
  const scanned = async () => {
    // Otherwise this connection's own scans would be counted up to a second later.
    await client.query('SELECT pg_stat_force_next_flush()');
    await client.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await client.query<{ table: string; rows: string }>(
      `SELECT relname AS table, seq_tup_read AS rows FROM pg_stat_user_tables WHERE n_live_tup > ${3 * COLLECTIONS}`,
    );
    return Object.fromEntries(rows.map(({ table, rows }) => [table, rows]));
  };

  test.each(['small', 'large'] as const)('a %s import deletes by index', async (queue) => {
    const user = { type: 'user', id: USERS + 1 };
    const game = { type: 'game', id: GAMES + 1 };
    await client.query(`
      INSERT INTO users (id, username) VALUES (${user.id}, 'leaves');
      INSERT INTO games (id, user_id, slug, title) VALUES (${game.id}, 7, 'leaves', 'Leaves');
      INSERT INTO builds (game_id, channel_name) VALUES (${game.id}, 'linux');
      UPDATE collections SET games_count = 101 WHERE id IN (5, 6);
      INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
      VALUES (5, ${game.id}, 1000, 6), (6, ${game.id}, 1000, ${user.id}), (5, 12345, 1001, ${user.id})`);
    const before = await scanned();
    const records = [user, game].map((record) => JSON.stringify({ ...record, deleted: true }));
    expect(await run(queue, Buffer.from(records.join('\n')))).toMatchObject({
      users: { deleted: 1 },
      games: { deleted: 1 },
    });
    expect(await scanned()).toEqual(before);
    expect(
      (await client.query('DELETE FROM collection_games WHERE sort_key > 999 RETURNING user_id, game_id'))
        .rows,
    ).toEqual([{ user_id: '6', game_id: '12345' }]);
  });
});

test('control: detects a table scan', async () => {
  const everybody = read('by_display_name', 'SELECT id FROM users WHERE display_name = $name');
  const { scanned, pages } = await explainPlan(client, everybody, { name: 'nobody' });
  expect(scanned).toEqual(['users']);
  expect(pages).toBeGreaterThan(20);
});
