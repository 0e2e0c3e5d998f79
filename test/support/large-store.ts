import type { Client } from 'pg';

export const USERS = 100_000;
export const GAMES = 200_000;
export const PURCHASES = 1_000_000;
export const KEYS = 500_000;
export const COLLECTIONS = 2000;
const APPLICATIONS = 10_000;
// Skewed data: these have a hundred thousand of what others have ten of. The game is restricted, so that its keys
// decide who can view it.
export const POPULAR_GAME = 1000;
/** The last builds: of the popular game, after one of each game. */
export const NIGHTLY_BUILDS = 2000;
/** Sixty uploads, each of a channel. */
export const GAME_OF_CHANNELS = 3003;
export const ADMIN_OF_ALL = 8;
export const COLLECTOR = 7;
const COLLECTED = 10_000;
export const ADDRESS_OF_COLLECTOR = 'Mail6@example.com';
export const LONG_COLLECTION = COLLECTIONS + 1;
export const BUNDLES = 50;
export const GAMES_OF_BUNDLE = 1741;
export const RESELLER = 9;
export const RESELLER_ADDRESS = 'Mail8@example.com';

// Every user has 3 email addresses, 10 purchases and 5 keys of each type; a tenth of the users have 20 games each.
const FILL = [
  `INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, ${USERS}) n`,
  `INSERT INTO user_emails (user_id, email, verified)
   SELECT n % ${USERS} + 1, 'mail' || n || '@example.com', n % 5 > 0 FROM generate_series(0, ${3 * USERS - 1}) n`,
  `INSERT INTO identities (issuer, subject, user_id)
   SELECT 'https://id.example.com', 'subject ' || n, n FROM generate_series(1, ${USERS}) n`,
  `INSERT INTO games (id, user_id, owner_name, slug, title, visibility, published_at)
   SELECT n, n % ${USERS / 10} + 1, 'user' || n % ${USERS / 10} + 1, 'game-' || n, 'Game ' || n,
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
  // Three of them for the popular game.
  `UPDATE purchases SET user_id = ${COLLECTOR}, email = '${ADDRESS_OF_COLLECTOR}'
   WHERE id % ${PURCHASES / COLLECTED} = 3 OR id % 400000 = 11`,
  `INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
   SELECT id, CASE WHEN id % 10 = 1 THEN ${POPULAR_GAME} ELSE id % ${GAMES} + 1 END, user_id, lower(email), created_at FROM purchases`,
  `INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
   SELECT id, (id + k * 37) % ${GAMES} + 1, user_id, lower(email), created_at FROM purchases, generate_series(1, 4) k WHERE id % 10 = 0`,
  `INSERT INTO bundles (id, user_id, slug, title, games_count)
   SELECT n, n, 'bundle-' || n, 'Bundle ' || n, ${GAMES_OF_BUNDLE} FROM generate_series(1, ${BUNDLES}) n`,
  `INSERT INTO bundle_games (bundle_id, game_id, position)
   SELECT b, b * 1000 + n, n FROM generate_series(1, ${BUNDLES}) b, generate_series(1, ${GAMES_OF_BUNDLE}) n`,
  // The collector has one of each; many people bought one that has few of its games.
  `UPDATE purchases SET purchase_type = 'bundle', bundle_id = id % ${BUNDLES} + 1 WHERE id % 20 = 0`,
  `UPDATE purchases SET purchase_type = 'bundle', bundle_id = id / ${PURCHASES / BUNDLES} + 1
   WHERE id % ${PURCHASES / BUNDLES} = 3`,
  `INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
   SELECT p.id, e.game_id, p.user_id, lower(p.email), p.created_at
   FROM purchases p JOIN bundle_games e ON e.bundle_id = p.bundle_id WHERE p.id % ${PURCHASES / BUNDLES} = 3
   ON CONFLICT DO NOTHING`,
  `INSERT INTO purchase_references (reference, purchase_id) SELECT 'order-' || id, id FROM purchases WHERE id % 10 = 1`,
  `INSERT INTO download_keys (key, game_id, email, user_id, account_id)
   SELECT 'key-' || n, CASE WHEN n % 5 = 1 THEN ${POPULAR_GAME} ELSE n % ${GAMES} + 1 END,
          'mail' || n % ${3 * USERS} || '@example.com', claimed_by, claimed_by
   FROM generate_series(1, ${KEYS}) n, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN n % ${USERS} + 1 END AS claimed_by) c`,
  `INSERT INTO download_keys (key, game_id, purchase_id, account_id, purchase_email)
   SELECT 'bought-' || pg.purchase_id || '-' || pg.game_id, pg.game_id, pg.purchase_id, pg.user_id, pg.email
   FROM purchase_games pg WHERE pg.purchase_id % 2 = 1`,
  // One email address and one account with thousands of keys of one game.
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
  // The first of each user's keys belongs to an app.
  `INSERT INTO api_keys (id, key_hash, hint, user_id, grant_id)
   SELECT n, sha256(n::text::bytea), 'gw_', n % ${USERS} + 1, CASE WHEN n < ${USERS} THEN n + 1 END
   FROM generate_series(1, ${KEYS}) n`,
  `INSERT INTO builds (game_id, channel_name, version, state)
   SELECT n, 'linux', 1, (ARRAY['completed', 'failed'])[n % 2 + 1] FROM generate_series(1, ${GAMES}) n`,
  `INSERT INTO file_uploads (id, game_id, filename, size)
   SELECT gen_random_uuid(), n, 'game.zip', 1 FROM generate_series(1, ${GAMES}) n`,
  `INSERT INTO upload_sessions (id, game_id, max_bytes, size, expires_at)
   SELECT id, game_id, 10, 1, now() + interval '1 day' FROM file_uploads`,
  `INSERT INTO profile_collections (collection_id, user_id) SELECT id, user_id FROM collections`,
  `INSERT INTO collections (id, user_id, title, description)
   SELECT ${COLLECTIONS} + n, ${COLLECTOR}, 'Shelf ' || n, repeat('x', 4000) FROM generate_series(1, 2000) n`,
  `INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
   SELECT ${LONG_COLLECTION}, n, -n, ${COLLECTOR} FROM generate_series(1, 20000) n`,
  `INSERT INTO uploads (id, game_id, filename, file_key, size)
   SELECT n, n, 'game.zip', 'game.zip', 1 FROM generate_series(1, ${GAMES}) n`,
  // Pushed builds: each has a patch from the one before.
  `INSERT INTO builds (id, game_id, channel_name, version, state, parent_build_id)
   SELECT ${GAMES} + n, ${POPULAR_GAME}, 'nightly', n, 'completed', ${GAMES} + nullif(n - 1, 0)
   FROM generate_series(1, ${NIGHTLY_BUILDS}) n`,
  `INSERT INTO build_files (id, build_id, type, state, size, file_key)
   SELECT 2 * ${GAMES} + 2 * n + place, ${GAMES} + n, type, 'uploaded', 1, type
   FROM generate_series(1, ${NIGHTLY_BUILDS}) n, unnest(ARRAY['signature', 'patch']) WITH ORDINALITY t (type, place)`,
  `INSERT INTO builds (id, game_id, channel_name, version, file_key, size)
   SELECT ${GAMES + NIGHTLY_BUILDS} + n, ${GAME_OF_CHANNELS}, 'channel ' || n % 60, (n + 59) / 60, 'game.zip', 1
   FROM generate_series(1, 600) n`,
  `SELECT setval(pg_get_serial_sequence('builds', 'id'), 3 * ${GAMES})`,
  // Small tables need many rows, because a table of one page would be scanned.
  `INSERT INTO refunds (purchase_id, user_id) SELECT n, n FROM generate_series(1, 10000) n`,
  `INSERT INTO bundles (id, user_id, slug, title, games_count)
   SELECT n, n, 'bundle-' || n, 'Bundle ' || n, 0 FROM generate_series(${BUNDLES + 1}, 10000) n`,
  `INSERT INTO identities (issuer, subject, user_id) SELECT 'https://id.example.com', n, n FROM generate_series(1, 10000) n`,
  `INSERT INTO file_uploads (id, game_id, filename, size)
   SELECT gen_random_uuid(), n, 'game.zip', 1 FROM generate_series(1, 10000) n`,
  `INSERT INTO upload_sessions (id, game_id, max_bytes, expires_at)
   SELECT gen_random_uuid(), n, 1, now() FROM generate_series(1, 10000) n`,
  `INSERT INTO sales_periods (game_id, unit, first_day, currency, purchases, amount)
   SELECT ${POPULAR_GAME} + n, 'day', date '2024-01-01' + d, 'USD', 1, 1
   FROM generate_series(0, 19) n, generate_series(0, 999) d`,
  `INSERT INTO uploads (id, game_id, filename, channel_name)
   SELECT ${GAMES} + 1 + n, ${GAME_OF_CHANNELS}, 'game.zip', 'channel ' || n FROM generate_series(0, 59) n`,
];

/** Fills an empty store with a million purchases. */
export async function fillLargeStore(client: Client): Promise<void> {
  await client.query(`SET maintenance_work_mem = '256MB'`);
  await withoutIndexes(client, async () => {
    // The trigger that numbers builds reads the table for each channel, so FILL numbers them.
    await client.query('ALTER TABLE builds DISABLE TRIGGER USER');
    for (const statement of FILL) await client.query(statement);
    await client.query('ALTER TABLE builds ENABLE TRIGGER USER');
  });
  await client.query('VACUUM ANALYZE');
}

/** Inserting is several times faster if indexes and foreign keys are created afterwards. */
async function withoutIndexes(client: Client, work: () => Promise<void>): Promise<void> {
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
