import { Readable } from 'node:stream';
import { Client } from 'pg';
import { LIVE_KEYS } from '../../src/auth/api-key-lookup';
import { LIVE_USER } from '../../src/auth/tokens.service';
import { FIRST_PAGE } from '../../src/collections/collection-games.service';
import { Clock } from '../../src/platform/config/clock';
import type { Settings } from '../../src/platform/config/settings';
import { read, type Statement } from '../../src/platform/database/statement';
import { EDITABLE_GAMES, GAME as ONE_GAME, VIEWABLE_GAME } from '../../src/games/games.service';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { readSmall } from '../../src/operator/import/small-import';
import { SmallImports } from '../../src/operator/import/small-imports.service';
import { SALES, SALES_BY_EMAIL, SALES_BY_NAME } from '../../src/purchases/game-sales.service';
import { KEY_BY_EMAIL, KEY_BY_KEY, KEY_BY_USER } from '../../src/purchases/download-keys.service';
import { OWNED_KEYS } from '../../src/purchases/owned-keys.service';
import { OWNERSHIP, OWNERSHIP_IN_GAME } from '../../src/purchases/ownership.service';
import { PURCHASES_BY_EMAIL, PURCHASES_BY_USER } from '../../src/purchases/purchases.service';
import { USER } from '../../src/users/users.service';
import { cloneDatabase } from '../support/database';
import { planOf } from '../support/plans';

let client: Client;
let url: string;
let drop: () => Promise<void>;

const USERS = 100_000;
const GAMES = 200_000;
const PURCHASES = 1_000_000;
const KEYS = 500_000;
const COLLECTIONS = 2000;
const APPLICATIONS = 10_000;
// Not everybody is like everybody else: these have a hundred thousand of what others have ten of.
// Restricted, so that its keys decide who sees it.
const POPULAR_GAME = 1000;
const ADMIN_OF_ALL = 8;
const COLLECTOR = 7;
const COLLECTED = 10_000;
const ADDRESS_OF_COLLECTOR = 'Mail6@example.com';
const RESELLER = 9;
const RESELLER_ADDRESS = 'Mail8@example.com';

// Every user has 3 addresses, 10 purchases and 5 keys of each kind; a tenth of the users make 20 games each.
const FILL = [
  `INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, ${USERS}) n`,
  `INSERT INTO user_emails (user_id, email, verified)
   SELECT n % ${USERS} + 1, 'mail' || n || '@example.com', n % 5 > 0 FROM generate_series(0, ${3 * USERS - 1}) n`,
  `INSERT INTO games (id, user_id, slug, title, visibility, published_at)
   SELECT n, n % ${USERS / 10} + 1, 'game-' || n, 'Game ' || n,
          (ARRAY['public', 'restricted', 'private'])[n % 3 + 1], now() FROM generate_series(1, ${GAMES}) n`,
  `INSERT INTO game_admins (game_id, user_id) SELECT n, n % ${USERS} + 1 FROM generate_series(1, ${GAMES}) n`,
  `INSERT INTO game_admins (game_id, user_id)
   SELECT n, ${ADMIN_OF_ALL} FROM generate_series(1, ${GAMES}) n ON CONFLICT DO NOTHING`,
  `INSERT INTO game_earnings (game_id, currency, amount)
   SELECT n, currency, n FROM generate_series(1, ${GAMES}) n, unnest(ARRAY['USD', 'EUR']) currency`,
  `INSERT INTO purchases (id, created_at, email, user_id, source, currency, amount, purchase_type)
   SELECT n, timestamptz '2024-01-01' + n * interval '1 second',
          'Mail' || n % ${3 * USERS} || '@example.com', CASE WHEN n % 2 = 0 THEN n % ${USERS} + 1 END, 'card', 'USD', n,
          CASE WHEN n % 10 = 0 THEN 'bundle' ELSE 'game' END FROM generate_series(1, ${PURCHASES}) n`,
  // Three of them of the popular game.
  `UPDATE purchases SET user_id = ${COLLECTOR}, email = '${ADDRESS_OF_COLLECTOR}'
   WHERE id % ${PURCHASES / COLLECTED} = 3 OR id % 400000 = 11`,
  `INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
   SELECT id, CASE WHEN id % 10 = 1 THEN ${POPULAR_GAME} ELSE id % ${GAMES} + 1 END, user_id, lower(email), created_at FROM purchases`,
  `INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
   SELECT id, (id + k * 37) % ${GAMES} + 1, user_id, lower(email), created_at FROM purchases, generate_series(1, 4) k WHERE id % 10 = 0`,
  `INSERT INTO download_keys (key, game_id, email, user_id, account_id)
   SELECT 'key-' || n, CASE WHEN n % 5 = 1 THEN ${POPULAR_GAME} ELSE n % ${GAMES} + 1 END,
          'mail' || n % ${3 * USERS} || '@example.com', claimed_by, claimed_by
   FROM generate_series(1, ${KEYS}) n, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN n % ${USERS} + 1 END AS claimed_by) c`,
  `INSERT INTO download_keys (key, game_id, purchase_id, account_id, purchase_email)
   SELECT 'bought-' || pg.purchase_id || '-' || pg.game_id, pg.game_id, pg.purchase_id, pg.user_id, pg.email
   FROM purchase_games pg WHERE pg.purchase_id % 2 = 1`,
  // One address and one account with thousands of keys of one game.
  `INSERT INTO download_keys (key, game_id, email, account_id, user_id)
   SELECT 'many-' || n, ${POPULAR_GAME}, '${RESELLER_ADDRESS}', ${RESELLER}, ${RESELLER} FROM generate_series(1, 20000) n`,
  `INSERT INTO collections (id, user_id, title)
   SELECT n, n % ${USERS} + 1, 'Shelf' FROM generate_series(1, ${COLLECTIONS}) n`,
  `INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
   SELECT c.id, (c.id * 7919 + n * 13) % ${GAMES} + 1, n, c.user_id FROM collections c, generate_series(1, 100) n`,
  `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
   SELECT 'app-' || n, n, 'Application ' || n, '{}', '{}' FROM generate_series(1, ${APPLICATIONS}) n`,
  `INSERT INTO oauth_grants (id, user_id, client_id, scopes)
   SELECT n, n, 'app-' || n % ${APPLICATIONS} + 1, '{}' FROM generate_series(1, ${USERS}) n`,
  // The first of each user's keys is an application's.
  `INSERT INTO api_keys (id, key_hash, hint, user_id, grant_id)
   SELECT n, sha256(n::text::bytea), 'gw_', n % ${USERS} + 1, CASE WHEN n < ${USERS} THEN n + 1 END
   FROM generate_series(1, ${KEYS}) n`,
  `INSERT INTO builds (game_id, channel_name, state)
   SELECT n, 'linux', (ARRAY['completed', 'failed'])[n % 2 + 1] FROM generate_series(1, ${GAMES}) n`,
  `INSERT INTO profile_collections (collection_id, user_id) SELECT id, user_id FROM collections`,
];

beforeAll(async () => {
  const database = await cloneDatabase();
  drop = database.drop;
  url = database.direct_url ?? database.url;
  client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`SET maintenance_work_mem = '256MB'`);
  await withoutIndexes(async () => {
    for (const statement of FILL) await client.query(statement);
  });
  await client.query('VACUUM ANALYZE');
}, 400_000);
afterAll(async () => {
  await client?.end();
  await drop?.();
});

/** Rows are written several times as fast where indexes and foreign keys are made afterwards. */
async function withoutIndexes(work: () => Promise<void>): Promise<void> {
  const { rows } = await client.query<{ remove: string; restore: string }>(`
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS remove,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS restore
    FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class c ON c.oid = indrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT indisprimary
      AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE contype IN ('u', 'x'))`);
  for (const { remove } of rows) await client.query(remove);
  await work();
  for (const { restore } of rows.reverse()) await client.query(restore);
}

const GAME = 1002;
const KEY_OF_APPLICATION = 1;
const KEY_OF_USER = KEYS;
const ownerOf = (game: number) => (game % (USERS / 10)) + 1;
const NEWEST = ['infinity', Number.MAX_SAFE_INTEGER];
const hashes = (...keys: string[]) =>
  client.query<{ hash: string }>('SELECT sha256(k::bytea)::text AS hash FROM unnest($1::text[]) k', [keys]);

// How many pages each may look at, where the rows that it answers with are few.
const LOOKUPS: [Statement, unknown[], number][] = [
  [USER, [17], 5],
  [LIVE_USER, [17, 16, 0], 10],
  [EDITABLE_GAMES, [ownerOf(GAME)], 350],
  [VIEWABLE_GAME, [GAME, 4999], 40],
  [VIEWABLE_GAME, [GAME, ADMIN_OF_ALL], 20],
  [VIEWABLE_GAME, [POPULAR_GAME, RESELLER], 40],
  [VIEWABLE_GAME, [POPULAR_GAME, COLLECTOR], 40],
  [VIEWABLE_GAME, [POPULAR_GAME, 4999], 40],
  [ONE_GAME, [GAME, 4999], 10],
  [ONE_GAME, [POPULAR_GAME, RESELLER], 20],
  [ONE_GAME, [POPULAR_GAME, 4999], 40],
  [OWNERSHIP, [GAME, 4999, KEY_OF_USER], 80],
  [OWNERSHIP, [GAME, 4999, KEY_OF_APPLICATION], 80],
  [OWNERSHIP, [POPULAR_GAME, 4999, KEY_OF_USER], 100],
  [OWNERSHIP, [POPULAR_GAME, 4999, KEY_OF_APPLICATION], 80],
  [OWNERSHIP, [POPULAR_GAME, COLLECTOR, KEY_OF_USER], 40],
  [OWNERSHIP, [POPULAR_GAME, RESELLER, KEY_OF_USER], 40],
  [OWNERSHIP_IN_GAME, [POPULAR_GAME, 4999], 60],
  [OWNERSHIP_IN_GAME, [POPULAR_GAME, RESELLER], 20],
  [OWNED_KEYS, [1001, 50, 0], 80],
  [OWNED_KEYS, [1001, 50, 50], 20],
  [OWNED_KEYS, [COLLECTOR, 50, 0], 800],
  [OWNED_KEYS, [RESELLER, 50, 0], 800],
  [KEY_BY_KEY, [GAME, ownerOf(GAME), 'key-1000'], 20],
  [KEY_BY_KEY, [GAME, ADMIN_OF_ALL, 'key-1000'], 20],
  [KEY_BY_USER, [GAME, ownerOf(GAME), 1001], 40],
  [KEY_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, 1001], 40],
  [KEY_BY_EMAIL, [GAME, ownerOf(GAME), 'MAIL1000@example.com'], 60],
  [KEY_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'], 60],
  [KEY_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR], 50],
  [KEY_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, RESELLER], 50],
  [KEY_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR], 60],
  [KEY_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, RESELLER_ADDRESS], 60],
  [PURCHASES_BY_USER, [GAME, ownerOf(GAME), 1002], 60],
  [PURCHASES_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, 1002], 90],
  [PURCHASES_BY_USER, [GAME, ownerOf(GAME), COLLECTOR], 60],
  [PURCHASES_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR], 60],
  [PURCHASES_BY_EMAIL, [GAME, ownerOf(GAME), 'MAIL1000@example.com'], 60],
  [PURCHASES_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'], 60],
  [PURCHASES_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR], 90],
  [SALES, [GAME, ownerOf(GAME), '-infinity', ...NEWEST, 20, 0], 500],
  // 100,000 sales: a page of them costs what a page costs, wherever it is.
  [SALES, [POPULAR_GAME, ADMIN_OF_ALL, '-infinity', ...NEWEST, 20, 0], 500],
  [SALES, [POPULAR_GAME, ADMIN_OF_ALL, '-infinity', '2024-01-05 00:00:00+00', 345600, 20, 0], 500],
  [SALES, [POPULAR_GAME, ADMIN_OF_ALL, '2024-01-05T00:00:00Z', ...NEWEST, 20, 100], 500],
  [SALES_BY_NAME, [GAME, ownerOf(GAME), 'User1002', ...NEWEST, 20, 0], 80],
  [SALES_BY_NAME, [POPULAR_GAME, ADMIN_OF_ALL, `user${COLLECTOR}`, ...NEWEST, 20, 0], 150],
  [SALES_BY_EMAIL, [GAME, ownerOf(GAME), 'MAIL1000@example.com', ...NEWEST, 20, 0], 80],
  [SALES_BY_EMAIL, [POPULAR_GAME, ADMIN_OF_ALL, ADDRESS_OF_COLLECTOR, ...NEWEST, 20, 0], 150],
];

test.each(LOOKUPS.map(([statement, values, most]) => [statement.name, values, most, statement] as const))(
  '%s %j is index probes only',
  async (_, values, most, statement) => {
    const { scanned, pages } = await planOf(client, statement, values);
    expect(scanned).toEqual([]);
    expect(pages).toBeLessThanOrEqual(most);
  },
);

test('purchases are, too, where most people have twenty addresses', async () => {
  await client.query('ALTER TABLE user_emails ALTER user_id SET (n_distinct = -0.05)');
  await client.query('ANALYZE user_emails (user_id)');
  const { pages } = await planOf(client, PURCHASES_BY_USER, [POPULAR_GAME, ADMIN_OF_ALL, COLLECTOR]);
  await client.query('ALTER TABLE user_emails ALTER user_id RESET (n_distinct)');
  await client.query('ANALYZE user_emails (user_id)');
  expect(pages).toBeLessThanOrEqual(60);
});

test('so is the lookup of keys, for one and for many', async () => {
  for (const count of [1, 30]) {
    const { rows } = await hashes(...Array.from({ length: count }, (_, i) => String(i + 1)));
    const { scanned, pages } = await planOf(client, LIVE_KEYS, [
      rows.map(({ hash }) => `"${hash.replace('\\', '\\\\')}"`),
    ]);
    expect(scanned).toEqual([]);
    expect(pages).toBeLessThanOrEqual(8 * count);
  }
});

test.each([
  { name: 'by user', lookup: PURCHASES_BY_USER, values: [GAME, ownerOf(GAME), 1002] },
  { name: 'by e-mail', lookup: PURCHASES_BY_EMAIL, values: [GAME, ownerOf(GAME), 'MAIL1000@example.com'] },
])(
  'purchases $name: rows of games and of purchases are read, and indexes of all else',
  async ({ lookup, values }) => {
    const { rowsOf } = await planOf(client, lookup, values);
    expect(rowsOf).toEqual(['games', 'purchases']);
  },
);

test.each([
  { name: 'by user', lookup: KEY_BY_USER, values: [POPULAR_GAME, ADMIN_OF_ALL, 1001] },
  { name: 'by e-mail', lookup: KEY_BY_EMAIL, values: [POPULAR_GAME, ADMIN_OF_ALL, 'MAIL1000@example.com'] },
])(
  'keys $name: rows of the game, the key and its owner are read, and indexes of all else',
  async ({ lookup, values }) => {
    const { rowsOf } = await planOf(client, lookup, values);
    expect(rowsOf).toEqual(['games', 'download_keys', 'users']);
  },
);

const PAGE = [5, 17, 50];

test('a page of a collection keeps no game in mind, since none comes twice', async () => {
  expect(await planOf(client, FIRST_PAGE, PAGE)).toMatchObject({ remembers: false });
});

test('it finds its games by index, too, before anything is known of the sums', async () => {
  await client.query('BEGIN');
  const { rows } = await client.query<{ made: string }>(
    `SELECT pg_get_indexdef('games_hash_idx'::regclass) AS made`,
  );
  await client.query('DROP INDEX games_hash_idx');
  await client.query(rows[0]!.made);
  const { scanned, remembers } = await planOf(client, FIRST_PAGE, PAGE);
  await client.query('ROLLBACK');
  expect(scanned).not.toContain('games');
  expect(remembers).toBe(false);
});

describe('a deletion reads no table from end to end', () => {
  const settings = { DATABASE_URL: '' };
  beforeAll(() => void (settings.DATABASE_URL = url));

  const large = (lines: Buffer) =>
    importRecords(() => connectTo(settings), Readable.from([lines]), { pepper: Buffer.alloc(0) });
  const small = async (lines: Buffer) => {
    const imports = new SmallImports(settings as Settings, undefined as never, new Clock());
    const { signal } = new AbortController();
    const read = await readSmall(
      Readable.from([lines])[Symbol.asyncIterator](),
      [],
      imports.types,
      true,
      signal,
    );
    return imports.run(read!, signal);
  };

  /** Rows that were read by scans of whole tables. */
  const scanned = async () => {
    await client.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await client.query<{ table: string; rows: string }>(
      `SELECT relname AS table, seq_tup_read AS rows FROM pg_stat_user_tables WHERE n_live_tup > ${COLLECTIONS}`,
    );
    return Object.fromEntries(rows.map(({ table, rows }) => [table, rows]));
  };

  test.each([
    ['large', large],
    ['small', small],
  ])('in a %s import', async (_, run) => {
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
    expect(await run(Buffer.from(records.join('\n')))).toMatchObject({
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

test('the test sees a table that is read from end to end', async () => {
  const everybody = read('by_display_name', 'SELECT id FROM users WHERE display_name = $1');
  const { scanned, pages } = await planOf(client, everybody, ['nobody']);
  expect(scanned).toEqual(['users']);
  expect(pages).toBeGreaterThan(20);
});
