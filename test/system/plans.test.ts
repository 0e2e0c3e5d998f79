import { Readable } from 'node:stream';
import { Client } from 'pg';
import { read } from '../../src/platform/database/statement';
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
import { isPlannedOnce, planOf, timeOf } from '../support/plans';

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
const ownerOf = (game: number) => (game % (USERS / 10)) + 1;
const NEWEST = ['infinity', Number.MAX_SAFE_INTEGER];
const hashes = (...keys: string[]) =>
  client.query<{ hash: string }>('SELECT sha256(k::bytea)::text AS hash FROM unnest($1::text[]) k', [keys]);

// The number of pages that each may read if it can return only a few rows.
const LOOKUPS: [string, unknown[], number][] = [
  ['user', [17], 5],
  ['known_identity', ['https://id.example.com', 'somebody'], 5],
  ['has_password', [17], 5],
  ['live_user_of_token', [17, 16, 0], 10],
  ['editable_games', [ownerOf(GAME)], 300],
  ['viewable_game', [GAME, 4999], 10],
  ['viewable_game', [GAME, ADMIN_OF_ALL], 10],
  ['viewable_game', [POPULAR_GAME, RESELLER], 25],
  ['viewable_game', [POPULAR_GAME, COLLECTOR], 25],
  ['viewable_game', [POPULAR_GAME, 4999], 40],
  ['game', [GAME, 4999], 10],
  ['game', [POPULAR_GAME, RESELLER], 20],
  ['game', [POPULAR_GAME, 4999], 40],
  ['ownership', [GAME, 4999, KEY_OF_USER], 80],
  ['ownership', [GAME, 4999, KEY_OF_APPLICATION], 80],
  ['ownership', [POPULAR_GAME, 4999, KEY_OF_USER], 100],
  ['ownership', [POPULAR_GAME, 4999, KEY_OF_APPLICATION], 80],
  ['ownership', [POPULAR_GAME, COLLECTOR, KEY_OF_USER], 40],
  ['ownership', [POPULAR_GAME, RESELLER, KEY_OF_USER], 40],
  ['ownership_in_game', [POPULAR_GAME, 4999], 60],
  ['ownership_in_game', [POPULAR_GAME, RESELLER], 30],
  ['owned_keys', [1001, 50, 0], 80],
  ['owned_keys', [1001, 50, 50], 20],
  ['owned_keys', [COLLECTOR, 50, 0], 800],
  ['owned_keys', [RESELLER, 50, 0], 800],
  ['download_key_by_key', [GAME, ownerOf(GAME), 'key-1000'], 20],
  ['download_key_by_key', [GAME, ADMIN_OF_ALL, 'key-1000'], 20],
  ['download_key_by_user', [GAME, ownerOf(GAME), 1001], 25],
  ['download_key_by_user', [POPULAR_GAME, ADMIN_OF_ALL, 1001], 30],
  ['download_key_by_email', [GAME, ownerOf(GAME), 'MAIL1000@example.com'], 30],
  ['download_key_by_email', [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'], 35],
  ['download_key_by_user', [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR], 50],
  ['download_key_by_user', [POPULAR_GAME, ADMIN_OF_ALL, RESELLER], 50],
  ['download_key_by_email', [POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR], 60],
  ['download_key_by_email', [POPULAR_GAME, ADMIN_OF_ALL, RESELLER_ADDRESS], 60],
  ['purchases_by_user', [GAME, ownerOf(GAME), 1002], 40],
  ['purchases_by_user', [POPULAR_GAME, ADMIN_OF_ALL, 1002], 90],
  ['purchases_by_user', [GAME, ownerOf(GAME), COLLECTOR], 60],
  ['purchases_by_user', [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR], 60],
  ['purchases_by_email', [GAME, ownerOf(GAME), 'MAIL1000@example.com'], 20],
  ['purchases_by_email', [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'], 30],
  ['purchases_by_email', [POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR], 90],
  ['game_sales', ['-infinity', ...NEWEST, 20, 0, GAME, ownerOf(GAME)], 250],
  // 100,000 sales: any page of them costs the same.
  ['game_sales', ['-infinity', ...NEWEST, 20, 0, POPULAR_GAME, ADMIN_OF_ALL], 500],
  ['game_sales', ['-infinity', '2024-01-05 00:00:00+00', 345600, 20, 0, POPULAR_GAME, ADMIN_OF_ALL], 500],
  ['game_sales', ['2024-01-05T00:00:00Z', ...NEWEST, 20, 100, POPULAR_GAME, ADMIN_OF_ALL], 500],
  ['seller_sale', [ownerOf(POPULAR_GAME), 11], 60],
  // The seller has twenty games, one of them with 100,000 sales.
  ...(['older', 'newer'] as const).flatMap((direction): typeof LOOKUPS => {
    const name = direction === 'older' ? 'seller_sales' : 'seller_sales_before';
    const start = direction === 'older' ? NEWEST : ['-infinity', 0];
    const seller = ownerOf(POPULAR_GAME);
    const all = [seller, null, '-infinity', 'infinity'];
    return [
      [name, [...all, ...start, 200, 51, null, null, null, 51], 3000],
      [name, [...all, '2024-01-05 00:00:00+00', 345600, 200, 51, null, null, null, 51], 3000],
      [name, [seller, POPULAR_GAME, '-infinity', 'infinity', ...start, 200, 51, null, null, null, 51], 3000],
      // Rare ones: a part of the sales is searched.
      [name, [...all, ...start, 10_000, null, null, 'refunded', null, 51], 9000],
      [name, [...all, ...start, 10_000, null, 'EUR', null, 'bank transfer', 51], 9000],
    ];
  }),
  ['seller_game_titles', [ownerOf(POPULAR_GAME), 201], 250],
  ...(['older', 'newer'] as const).flatMap((direction): typeof LOOKUPS => {
    const name = direction === 'older' ? 'seller_buyers' : 'seller_buyers_before';
    const start = direction === 'older' ? NEWEST : ['-infinity', 0];
    const seller = ownerOf(POPULAR_GAME);
    const all = [seller, null, '-infinity', 'infinity'];
    return [
      [name, [...all, ...start, 200, 102, 102, 51], 40_000],
      [name, [...all, '2024-01-05 00:00:00+00', 345600, 200, 102, 102, 51], 40_000],
      [name, [seller, POPULAR_GAME, '-infinity', 'infinity', ...start, 200, 102, 102, 51], 40_000],
      // More sales, because few of their buyers were new.
      [name, [...all, ...start, 10_000, null, 408, 51], 40_000],
    ];
  }),
  // With thousands of games, the index of the seller's sales is read instead of an entry per game and buyer.
  ['seller_buyers', [ADMIN_OF_ALL, null, '-infinity', 'infinity', ...NEWEST, 200, 102, 102, 51], 2_000_000],
  // Five bundles of 1741 games, of which the seller's are found.
  ['seller_sales_of_person', [ownerOf(POPULAR_GAME), COLLECTOR, ADDRESS_OF_COLLECTOR], 1800],
  ['seller_sales_of_person', [ownerOf(POPULAR_GAME), null, 'mail4@example.com'], 175],
  ['seller_person_spent', [ownerOf(POPULAR_GAME), COLLECTOR, ADDRESS_OF_COLLECTOR], 1000],
  ['seller_keys_of_person', [ownerOf(POPULAR_GAME), RESELLER, RESELLER_ADDRESS], 1750],
  ['seller_key', [ownerOf(POPULAR_GAME), 'key-1001'], 20],
  ['sales_totals', [ownerOf(POPULAR_GAME), null, 'day', '2024-01-01', '2026-12-31'], 1000],
  [
    'sales_figures',
    [
      ownerOf(POPULAR_GAME),
      null,
      'day',
      ...['2024-03-01', '2024-03-30', '2024-01-30', '2024-02-29'],
      'USD',
      'day',
      'day',
      30,
      26,
      0,
    ],
    1000,
  ],
  ['recent_sales', ['2024-01-01', '2024-01-31', null, null, ownerOf(POPULAR_GAME), null], 35_000],
  // The search reads all 100,000 email addresses, and the names of 20,000 buyers.
  ['seller_search', [ownerOf(POPULAR_GAME), 'mail1', null], 250_000],
  ['seller_search', [ownerOf(POPULAR_GAME), '1@example', null], 8000],
  ['seller_search', [ownerOf(POPULAR_GAME), `user${COLLECTOR}`, null], 250_000],
  ['seller_search', [ownerOf(POPULAR_GAME), '11', 11], 300],
  ['owned_bundles', [1001], 40],
  ['owned_bundles', [COLLECTOR], 350],
  ['bundle_games', [0, 100, 1, COLLECTOR], 900],
  ['bundle_games', [1700, 100, 1, COLLECTOR], 400],
  ['bundle_games', [0, 100, 2, 1001], 20],
  ['library', [1001, 0], 350],
  ['library_found', [1001, 'game 1', true, 0], 800],
  ['library_bundle', [COLLECTOR, 'game 1', 0, 1], 20_000],
  ['key_page', ['key-1000'], 25],
  ['own_account', [COLLECTOR], 20],
  ['uploads_of_key', ['key-1000'], 30],
  ['games_sold_with_key', ['key-1000'], 10],
  ['owns_game', [POPULAR_GAME, RESELLER], 20],
  ['created_keys', [GAME, ownerOf(GAME), 0, Number.MAX_SAFE_INTEGER, null, null, 51], 15],
  ['created_keys', [POPULAR_GAME, ADMIN_OF_ALL, 0, Number.MAX_SAFE_INTEGER, null, null, 51], 350],
  // None of 120,000 keys has the label: a part of them is searched.
  ['created_keys', [POPULAR_GAME, ADMIN_OF_ALL, 0, Number.MAX_SAFE_INTEGER, 'Press kit', null, 51], 1000],
  ['created_keys', [POPULAR_GAME, ADMIN_OF_ALL, 0, Number.MAX_SAFE_INTEGER, null, 'revoked', 51], 1000],
  ['created_key_labels', [POPULAR_GAME, ADMIN_OF_ALL], 65],
  ['created_keys_count', [POPULAR_GAME, ADMIN_OF_ALL, 0, Number.MAX_SAFE_INTEGER, null], 1650],
  ['own_uploads', [POPULAR_GAME, ADMIN_OF_ALL, null], 25],
  ['pending_file_uploads', [POPULAR_GAME, ADMIN_OF_ALL, null, '2026-01-01'], 40],
  ['channels', [GAME_OF_CHANNELS, null, null, ADMIN_OF_ALL], 1500],
  ['profile_builds', [ownerOf(GAME), '', [], 0, 50], 700],
  ['own_game', [POPULAR_GAME, ADMIN_OF_ALL], 20],
  ['recent_game_sales', [ADMIN_OF_ALL, POPULAR_GAME, '2024-01-01'], 50],
  ['games_page', [ownerOf(GAME), ...NEWEST], 700],
  ['games_with_keys_page', [ownerOf(GAME), ...NEWEST], 450],
  ['builds_page', [POPULAR_GAME, ADMIN_OF_ALL, null, NEWEST_BUILD], 850],
  ['builds_page', [POPULAR_GAME, ADMIN_OF_ALL, null, NEWEST_BUILD - NIGHTLY_BUILDS / 2], 850],
];

test.each(LOOKUPS)('%s %j uses index probes only', async (name, values, most) => {
  const { scanned, pages } = await planOf(client, name, values);
  expect(scanned).toEqual([]);
  expect(pages).toBeLessThanOrEqual(most);
});

test('purchases use index probes too if most users have twenty email addresses', async () => {
  await client.query('ALTER TABLE user_emails ALTER user_id SET (n_distinct = -0.05)');
  await client.query('ANALYZE user_emails (user_id)');
  const { pages } = await planOf(client, 'purchases_by_user', [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR]);
  await client.query('ALTER TABLE user_emails ALTER user_id RESET (n_distinct)');
  await client.query('ANALYZE user_emails (user_id)');
  expect(pages).toBeLessThanOrEqual(60);
});

// The most expensive values for each small read.
const COSTLIEST: Record<string, unknown[][]> = {
  // Tested separately below.
  live_api_keys: [],
  live_user_of_token: [[17, 16, 0]],
  edited_game: [
    [null, `game-${GAME}`, `user${ownerOf(GAME)}`, ADMIN_OF_ALL],
    [POPULAR_GAME, null, null, ADMIN_OF_ALL],
  ],
  channel: [
    ['nightly', POPULAR_GAME, null, null, ADMIN_OF_ALL],
    ['channel 7', null, `game-${GAME_OF_CHANNELS}`, `user${ownerOf(GAME_OF_CHANNELS)}`, ADMIN_OF_ALL],
  ],
  few_channels: [
    [GAME_OF_CHANNELS, null, null, ADMIN_OF_ALL],
    [null, `game-${GAME_OF_CHANNELS}`, `user${ownerOf(GAME_OF_CHANNELS)}`, ADMIN_OF_ALL],
  ],
  viewable_game: [
    [POPULAR_GAME, RESELLER],
    [POPULAR_GAME, COLLECTOR],
    [POPULAR_GAME, 4999],
  ],
  few_editable_games: [[ownerOf(GAME)], [ADMIN_OF_ALL]],
  game: [[POPULAR_GAME, 4999]],
  user: [[17]],
  download_key_by_key: [[POPULAR_GAME, ADMIN_OF_ALL, 'key-1001']],
  download_key_by_user: [
    [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR],
    [POPULAR_GAME, ADMIN_OF_ALL, RESELLER],
  ],
  download_key_by_email: [[POPULAR_GAME, ADMIN_OF_ALL, RESELLER_ADDRESS]],
  purchases_by_user: [[POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR]],
  purchases_by_email: [[POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR]],
  ownership_in_game: [[POPULAR_GAME, 4999]],
  ownership: [[POPULAR_GAME, 4999, KEY_OF_USER]],
  uploads: [
    [4999, null, POPULAR_GAME],
    [4999, null, GAME_OF_CHANNELS],
  ],
  upload: [[POPULAR_GAME, 4999, null]],
  upload_file: [[4999, null, POPULAR_GAME]],
  build: [[4999, null, NEWEST_BUILD]],
  build_file: [[4999, null, 'signature', NEWEST_BUILD]],
  game_to_download: [[4999, null, POPULAR_GAME]],
  collection: [[LONG_COLLECTION, COLLECTOR]],
  collections_editable: [[COLLECTOR]],
  collections_editable_with_game: [[COLLECTOR, 1]],
  collection_editors: [[LONG_COLLECTION]],
  collection_to_edit: [[COLLECTOR, LONG_COLLECTION]],
  game_to_collect: [[POPULAR_GAME, 4999]],
  live_operator_tokens: [[]],
  person_account: [[COLLECTOR]],
  person_by_address: [['mail1000@example.com']],
  claimable: [
    [COLLECTOR, 1, 1001],
    [4999, 1, 1001],
  ],
  claimed_key: [
    [COLLECTOR, POPULAR_GAME],
    [RESELLER, POPULAR_GAME],
  ],
  sold_bundle: [[1]],
  account_to_sign_in: [['mail1000@example.com'], ['user1000']],
  own_game: [[POPULAR_GAME, ADMIN_OF_ALL]],
  title_of_own_game: [[POPULAR_GAME, ADMIN_OF_ALL]],
  newest_build_by_game: [[POPULAR_GAME, 'nightly']],
  newest_build_by_target: [[`user${ownerOf(GAME)}`, `game-${GAME}`, 'linux']],
  created_keys_game: [[POPULAR_GAME, ADMIN_OF_ALL]],
  sale_message_fields: [
    [10, null],
    [10, ADMIN_OF_ALL],
  ],
  key_page: [['key-1000']],
  account_link: [[`\\x${'00'.repeat(32)}`]],
  links_are_sent: [[]],
  last_account: [[]],
  link_request_email: [[1, null]],
  file_of_key: [['key-1000', 1]],
  owns_game: [
    [POPULAR_GAME, RESELLER],
    [POPULAR_GAME, COLLECTOR],
  ],
  sale: [[10]],
  order: [[[POPULAR_GAME], 17, 'mail1000@example.com', 'order-1']],
  sold_games: [[10]],
  has_password: [[17]],
  known_identity: [['https://id.example.com', 'somebody']],
  seller_key: [[ADMIN_OF_ALL, 'key-1001']],
  edited_build: [[NEWEST_BUILD, ADMIN_OF_ALL]],
  edited_build_files: [[NEWEST_BUILD, ADMIN_OF_ALL]],
  // The longest path.
  upgrade_path: [[ADMIN_OF_ALL, null, NEWEST_BUILD, NEWEST_BUILD - 49]],
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
      const limit = await timeOf(client, CONTROL, []);
      const ms = await timeOf(client, name, values);
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
      'SELECT id FROM games WHERE id = ANY ($1::bigint[]) AND $2::text IS NULL',
    );
    expect(await isPlannedOnce(client, games, [[1, 2], 'x'])).toBe(false);
  });
});

test('key lookups use index probes, for one and for many', async () => {
  for (const count of [1, 30]) {
    const { rows } = await hashes(...Array.from({ length: count }, (_, i) => String(i + 1)));
    const { scanned, pages } = await planOf(client, 'live_api_keys', [
      rows.map(({ hash }) => `"${hash.replace('\\', '\\\\')}"`),
    ]);
    expect(scanned).toEqual([]);
    expect(pages).toBeLessThanOrEqual(8 * count);
  }
});

test.each([
  { name: 'by user', lookup: 'purchases_by_user', values: [GAME, ownerOf(GAME), 1002] },
  { name: 'by email', lookup: 'purchases_by_email', values: [GAME, ownerOf(GAME), 'MAIL1000@example.com'] },
])(
  'purchases $name: reads rows of games and purchases, and only indexes of other tables',
  async ({ lookup, values }) => {
    const { rowsOf } = await planOf(client, lookup, values);
    expect(rowsOf).toEqual(['games', 'purchases']);
  },
);

test.each([
  { name: 'by user', lookup: 'download_key_by_user', values: [POPULAR_GAME, ADMIN_OF_ALL, 1001] },
  {
    name: 'by email',
    lookup: 'download_key_by_email',
    values: [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'],
  },
])(
  'keys $name: reads rows of the game, the key and its owner, and only indexes of other tables',
  async ({ lookup, values }) => {
    const { rowsOf } = await planOf(client, lookup, values);
    expect(rowsOf).toEqual(['games', 'download_keys', 'users']);
  },
);

const PAGE = [5, 17, 50];

test('a page of a collection does not memoize games, because none is repeated', async () => {
  expect(await planOf(client, 'collection_games_first_page', PAGE)).toMatchObject({ remembers: false });
});

test('a page of a collection finds its games by index even without statistics on the expression', async () => {
  await client.query('BEGIN');
  const { rows } = await client.query<{ made: string }>(
    `SELECT pg_get_indexdef('games_hash_idx'::regclass) AS made`,
  );
  await client.query('DROP INDEX games_hash_idx');
  await client.query(rows[0]!.made);
  const { scanned, remembers } = await planOf(client, 'collection_games_first_page', PAGE);
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
  const everybody = read('by_display_name', 'SELECT id FROM users WHERE display_name = $1');
  const { scanned, pages } = await planOf(client, everybody, ['nobody']);
  expect(scanned).toEqual(['users']);
  expect(pages).toBeGreaterThan(20);
});
