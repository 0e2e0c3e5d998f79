import { Client } from 'pg';
import { LIVE_KEYS } from '../src/auth/api-key-lookup';
import { KEYS_OF_USER } from '../src/auth/api-keys.service';
import { LIVE_USER } from '../src/auth/tokens.service';
import { statement, type Statement } from '../src/database/statement';
import { EDITABLE_GAMES, VIEWABLE_GAME } from '../src/games/games.service';
import { KEY_BY_EMAIL, KEY_BY_KEY, KEY_BY_USER } from '../src/purchases/download-keys.service';
import { PURCHASES_BY_EMAIL, PURCHASES_BY_USER } from '../src/purchases/purchases.service';
import { USER } from '../src/users/users.service';
import { cloneDatabase } from './support/database';
import { planOf } from './support/plans';

let client: Client;
let drop: () => Promise<void>;

// Every user has 3 addresses, 20 purchases and 5 keys; a tenth of the users make 20 games each.
const USERS = 5_000;
const GAMES = 10_000;
const FILL = `
  INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, ${USERS}) n;
  INSERT INTO user_emails (user_id, email, verified)
    SELECT n % ${USERS} + 1, 'mail' || n || '@example.com', n % 5 > 0 FROM generate_series(0, ${3 * USERS - 1}) n;
  INSERT INTO games (id, user_id, slug, title, visibility, published_at)
    SELECT n, n % ${USERS / 10} + 1, 'game-' || n, 'Game ' || n,
           (ARRAY['public', 'restricted', 'private'])[n % 3 + 1], now() FROM generate_series(1, ${GAMES}) n;
  INSERT INTO game_admins (game_id, user_id) SELECT n, n % ${USERS} + 1 FROM generate_series(1, ${GAMES}) n;
  INSERT INTO game_earnings (game_id, currency, amount)
    SELECT n, currency, n FROM generate_series(1, ${GAMES}) n, unnest(ARRAY['USD', 'EUR', 'JPY']) currency;
  INSERT INTO purchases (id, email, user_id, source, currency, amount, purchase_type)
    SELECT n, 'Mail' || n % ${3 * USERS} || '@example.com', CASE WHEN n % 2 = 0 THEN n % ${USERS} + 1 END, 'card', 'USD', n,
           CASE WHEN n % 10 = 0 THEN 'bundle' ELSE 'game' END FROM generate_series(1, ${20 * USERS}) n;
  INSERT INTO purchase_games (purchase_id, game_id)
    SELECT p.id, (p.id + k * 37) % ${GAMES} + 1 FROM purchases p, generate_series(0, 9) k
    WHERE k = 0 OR p.purchase_type = 'bundle';
  INSERT INTO download_keys (key, game_id, email, user_id)
    SELECT 'key-' || n, n % ${GAMES} + 1, 'mail' || n % ${3 * USERS} || '@example.com',
           CASE WHEN n % 2 = 0 THEN n % ${USERS} + 1 END FROM generate_series(1, ${5 * USERS}) n;
  INSERT INTO api_keys (key_hash, hint, user_id)
    SELECT sha256(n::text::bytea), 'gw_', n % ${USERS} + 1 FROM generate_series(1, ${5 * USERS}) n;
  ANALYZE`;

beforeAll(async () => {
  const database = await cloneDatabase();
  drop = database.drop;
  client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(FILL);
}, 120_000);
afterAll(async () => {
  await client?.end();
  await drop?.();
});

const GAME = 1001;
const OWNER = (GAME % (USERS / 10)) + 1;
const hashes = (...keys: string[]) =>
  client.query<{ hash: string }>('SELECT sha256(k::bytea)::text AS hash FROM unnest($1::text[]) k', [keys]);

// How many pages each may look at, where the rows that it answers with are as few as these.
const LOOKUPS: [Statement, unknown[], number][] = [
  [USER, [17], 5],
  [LIVE_USER, [17, 16], 10],
  [KEYS_OF_USER, [17], 20],
  [EDITABLE_GAMES, [OWNER], 250],
  [VIEWABLE_GAME, [GAME, 4999], 40],
  [KEY_BY_KEY, [GAME, OWNER, 'key-1000'], 20],
  [KEY_BY_USER, [GAME, OWNER, 1001], 40],
  [KEY_BY_EMAIL, [GAME, OWNER, 'MAIL1000@example.com'], 60],
  [PURCHASES_BY_USER, [GAME, OWNER, 1001], 300],
  [PURCHASES_BY_EMAIL, [GAME, OWNER, 'MAIL1000@example.com'], 300],
];

test.each(LOOKUPS.map(([statement, values, most]) => [statement.name, statement, values, most] as const))(
  '%s is index probes only',
  async (_, statement, values, most) => {
    const { scanned, pages } = await planOf(client, statement, values);
    expect(scanned).toEqual([]);
    expect(pages).toBeLessThanOrEqual(most);
  },
);

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

test('the test sees a table that is read from end to end', async () => {
  const everybody = statement('by_display_name', 'SELECT id FROM users WHERE display_name = $1');
  const { scanned, pages } = await planOf(client, everybody, ['nobody']);
  expect(scanned).toEqual(['users']);
  expect(pages).toBeGreaterThan(20);
});
