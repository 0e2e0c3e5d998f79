/**
 * The floor: what a good engineer writes by hand for speed only. Bare node:http and pg: one prepared statement per
 * request for the credential and one for the data, then JSON.stringify. No validation, log, metrics, limits or security
 * headers.
 */
import { createHmac } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { Pool, types } from 'pg';
import { pushResponses } from './floor-pushes';
import { accessSql, uploadResponses } from './floor-uploads';
import type { Row } from './row';
import { ROOT_SCOPES } from '../../../src/auth/access/scopes';

const { DATABASE_URL, API_KEY_PEPPER, DATABASE_POOL_SIZE = '10', PORT = '0' } = process.env;
const HOST = 'gamewharf.example';

const { INT8, TIMESTAMPTZ } = types.builtins;
types.setTypeParser(INT8, Number);
const INT8_ARRAY = 1016 as never;
types.setTypeParser(INT8_ARRAY, (text: string) =>
  text === '{}' ? [] : text.slice(1, -1).split(',').map(Number),
);
// Timestamps stay in PostgreSQL's format, because the response rearranges their text.
types.setTypeParser(TIMESTAMPTZ, (text) => text);

export const pool = new Pool({
  connectionString: DATABASE_URL,
  max: Number(DATABASE_POOL_SIZE),
  min: Number(DATABASE_POOL_SIZE),
});

const one = async (name: string, text: string, values: unknown[]): Promise<Row | undefined> =>
  (await pool.query<Row>({ name, text, values })).rows[0];
const many = async (name: string, text: string, values: unknown[]): Promise<Row[]> =>
  (await pool.query<Row>({ name, text, values })).rows;

const CREDENTIAL = 'SELECT user_id, scopes FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL';

const USER =
  'SELECT id, username, display_name, gamer, developer, press_user, cover_url FROM users WHERE id = $1';

const GAMES = `
  SELECT g.id, g.owner_name, g.slug, g.title, g.short_text, g.cover_url, g.type, g.classification, g.traits,
    g.published_at, g.created_at, g.min_price, g.views_count, g.downloads_count, g.purchases_count,
    ARRAY(SELECT currency || amount FROM game_earnings e WHERE e.game_id = g.id ORDER BY currency) AS earnings
  FROM (SELECT id FROM games WHERE user_id = $1
        UNION SELECT game_id FROM game_admins WHERE user_id = $1) mine
  JOIN games g USING (id)
  ORDER BY g.created_at DESC, g.id DESC`;

const CAN_EDIT = `(g.user_id = $2
  OR EXISTS (SELECT FROM game_admins a WHERE a.game_id = g.id AND a.user_id = $2 OFFSET 0))`;

const verifier = (address: string) =>
  `(SELECT user_id FROM user_emails WHERE email = ${address} AND verified)`;
const keyLookup = (chosen: string) => `
  SELECT k.id AS key_id, k.created_at, k.downloads, k.key,
    u.id, u.username, u.display_name, u.gamer, u.developer, u.press_user, u.cover_url
  FROM games g
  LEFT JOIN LATERAL (${chosen}) k ON true
  LEFT JOIN users u ON u.id = coalesce(k.account_id, ${verifier('lower_ascii(k.email)')}, ${verifier('k.purchase_email')})
  WHERE g.id = $1 AND ${CAN_EDIT}`;
const LIVE = 'k.game_id = g.id AND k.revoked_at IS NULL';
const NEWEST = 'ORDER BY created_at DESC, id DESC LIMIT 1';
const newest = (condition: string) =>
  `(SELECT k.id, k.created_at FROM download_keys k WHERE ${condition} AND ${LIVE} ${NEWEST})`;
const ownedKeysSql = (user: string, keys = newest) => `
  ${keys(`k.account_id = ${user}`)}
  UNION ALL SELECT found.* FROM user_emails m CROSS JOIN LATERAL (
    ${keys('k.account_id IS NULL AND lower_ascii(k.email) = m.email')}
    UNION ALL ${keys(`k.account_id IS NULL AND k.purchase_email = m.email AND ${verifier('lower_ascii(k.email)')} IS NULL`)}) found
  WHERE m.user_id = ${user} AND m.verified`;
const newestKeysSql = (keys: string) =>
  `SELECT k.* FROM (SELECT id FROM (${keys}) found ${NEWEST}) newest JOIN download_keys k ON k.id = newest.id`;

const KEY_BY_KEY = keyLookup(`SELECT k.* FROM download_keys k WHERE k.key = $3 AND ${LIVE}`);
const KEY_BY_USER = keyLookup(newestKeysSql(ownedKeysSql('$3')));
const KEY_BY_EMAIL = keyLookup(
  newestKeysSql(`
    ${newest('lower_ascii(k.email) = lower_ascii($3)')} UNION ALL ${newest('k.purchase_email = lower_ascii($3)')}
    UNION ALL SELECT of_verifier.* FROM (SELECT user_id FROM user_emails WHERE email = lower_ascii($3) AND verified) v
    CROSS JOIN LATERAL (${ownedKeysSql('v.user_id')}) of_verifier`),
);

const purchaseLookup = (bought: string) => `
  SELECT p.* FROM games g
  LEFT JOIN LATERAL (
    SELECT p.id, p.donation, p.email, p.created_at, p.source, p.currency, p.amount, p.sale_rate, p.quantity, p.status,
      p.purchase_type, CASE p.purchase_type WHEN 'bundle' THEN
        ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) END AS game_ids
    FROM (${bought}) bought
    JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete') p ON true
  WHERE g.id = $1 AND ${CAN_EDIT}
  ORDER BY p.created_at DESC, p.id DESC`;
const boughtFrom = (address: string) =>
  `SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND email = ${address}`;
const boughtBy = (user: string) => `
  SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND user_id = ${user}
  UNION SELECT purchase_id FROM user_emails m CROSS JOIN LATERAL (${boughtFrom('m.email')} OFFSET 0) from_address
        WHERE m.user_id = ${user} AND m.verified`;
const PURCHASES_BY_USER = purchaseLookup(boughtBy('$3'));
const PURCHASES_BY_EMAIL = purchaseLookup(
  `${boughtFrom('lower_ascii($3)')} UNION ${boughtBy(verifier('lower_ascii($3)'))}`,
);

const CAN_VIEW_COLLECTION = `(NOT c.private OR c.user_id = $2
  OR EXISTS (SELECT FROM collection_admins a WHERE a.collection_id = c.id AND a.user_id = $2))`;
const COLLECTION_COLUMNS =
  'c.id, c.user_id, c.title, c.private, c.description, c.layout, c.games_count, c.created_at, c.updated_at';
const COLLECTION = `SELECT ${COLLECTION_COLUMNS} FROM collections c WHERE c.id = $1 AND ${CAN_VIEW_COLLECTION}`;
const COLLECTIONS = `
  SELECT ${COLLECTION_COLUMNS},
    EXISTS (SELECT FROM collection_games e WHERE e.collection_id = c.id AND e.game_id = $2) AS has_game
  FROM (SELECT * FROM collections WHERE user_id = $1
        UNION ALL SELECT c.* FROM collection_admins a JOIN collections c ON c.id = a.collection_id
        WHERE a.user_id = $1 AND c.user_id <> $1) c
  ORDER BY c.updated_at DESC, c.id DESC`;

const CAN_VIEW = `((g.visibility = 'public' AND g.published_at IS NOT NULL) OR ${CAN_EDIT}
  OR (g.visibility = 'restricted' AND EXISTS (${ownedKeysSql('$2')})))`;

const GAME_WITH_USER = `g.id, g.owner_name, g.slug, g.title, g.short_text, g.cover_url, g.type, g.classification, g.traits,
  g.min_price, g.published_at, g.created_at AS made_at,
  u.id AS user_id, u.username, u.display_name, u.cover_url AS user_cover_url`;
const GAME = `
  SELECT ${GAME_WITH_USER} FROM games g JOIN users u ON u.id = g.user_id WHERE g.id = $1 AND ${CAN_VIEW}`;

// Only owners can view a game that isn't public. OFFSET 0 prevents a second evaluation for the condition.
const OWNS = `(${CAN_EDIT} OR EXISTS (${ownedKeysSql('$2')}) OR EXISTS (
  SELECT FROM (${boughtBy('$2')}) bought
  JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete'))`;
const OWNERSHIP = `
  SELECT owns FROM (
    SELECT g.visibility = 'public' AND g.published_at IS NOT NULL AS public, ${OWNS} AS owns
    FROM games g WHERE g.id = $1 OFFSET 0) asked
  WHERE owns OR public`;

const allLive = (condition: string) =>
  `SELECT k.id, k.created_at FROM download_keys k WHERE ${condition} AND k.revoked_at IS NULL`;
const OWNED_KEYS = `
  SELECT k.id AS key_id, k.purchase_id, k.created_at, coalesce(k.updated_at, k.created_at) AS updated_at,
    k.downloads, ${GAME_WITH_USER}
  FROM (SELECT id FROM (${ownedKeysSql('$1', allLive)}) owned
        ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3) page
  JOIN download_keys k ON k.id = page.id
  JOIN games g ON g.id = k.game_id
  JOIN users u ON u.id = g.user_id
  ORDER BY k.created_at DESC, k.id DESC`;

const bundlesBought = (condition: string) => `
  SELECT p.id, p.bundle_id, p.created_at FROM purchases p
  WHERE p.user_id = $1 AND p.status = 'complete' AND ${condition}
  UNION
  SELECT p.id, p.bundle_id, p.created_at FROM user_emails ue JOIN purchases p ON lower_ascii(p.email) = ue.email
  WHERE ue.user_id = $1 AND ue.verified AND p.status = 'complete' AND ${condition}`;
const OWNED_BUNDLES = `
  SELECT p.id AS purchase_id, p.created_at AS bought_at, b.id, b.title, b.slug, b.cover_url, b.games_count, b.version,
    b.created_at, b.updated_at
  FROM (SELECT DISTINCT ON (bundle_id) * FROM (${bundlesBought('p.bundle_id IS NOT NULL')}) bought
        ORDER BY bundle_id, created_at DESC, id DESC) p
  JOIN bundles b ON b.id = p.bundle_id
  ORDER BY p.created_at DESC, p.id DESC LIMIT 100`;
const BUNDLE_GAMES = `
  SELECT page.* FROM bundles b LEFT JOIN LATERAL (
    SELECT e.position, e.created_at AS added_at, e.updated_at AS moved_at, b.min_price AS bundle_min_price, ${GAME_WITH_USER}
    FROM bundle_games e JOIN games g ON g.id = e.game_id JOIN users u ON u.id = g.user_id
    WHERE e.bundle_id = b.id ORDER BY e.position LIMIT $3 OFFSET $4) page ON true
  WHERE b.id = $2 AND EXISTS (${bundlesBought('p.bundle_id = $2')})
  ORDER BY page.position`;

// The position also counts entries that the caller can't view; it is known from the scan that finds the page.
const ENTRIES = `
  SELECT page.* FROM collections c
  LEFT JOIN LATERAL (
    SELECT e.collection_id, e.game_id, e.position, e.blurb, e.user_id, e.created_at, g.title, g.short_text, g.slug,
      g.owner_name, g.cover_url, g.type, g.classification, g.traits, g.min_price, g.published_at, g.created_at AS made_at
    FROM (SELECT e.*, row_number() OVER (ORDER BY e.sort_key) AS position
          FROM collection_games e WHERE e.collection_id = c.id) e
    JOIN games g ON g.id = e.game_id
    WHERE ${CAN_VIEW}
    ORDER BY e.sort_key LIMIT $3 OFFSET $4) page ON true
  WHERE c.id = $1 AND ${CAN_VIEW_COLLECTION}`;

const LATEST = `
  SELECT b.id, b.user_version FROM games g
  LEFT JOIN LATERAL (
    SELECT id, user_version FROM builds
    WHERE game_id = g.id AND channel_name = $2 AND state = 'completed' AND NOT hidden ORDER BY id DESC LIMIT 1) b ON true
  WHERE g.id = $1 AND g.visibility <> 'private'`;

const uploads = uploadResponses(many, {
  owns: OWNS,
  heldKey: `SELECT id FROM (${ownedKeysSql('$2')}) held ${NEWEST}`,
});

const pushes = pushResponses(many, { canEdit: CAN_EDIT, access: accessSql(OWNS) });

const modern = (text: string) => `${text.slice(0, 10)}T${text.slice(11, 19)}Z`;
const legacy = (text: string) => text.slice(0, 19);

const formats = new Map<string, { digits: number; format: Intl.NumberFormat }>();

function money(amount: number, currency: string): string {
  let known = formats.get(currency);
  if (!known) {
    const format = new Intl.NumberFormat('en-US', { style: 'currency', currency });
    formats.set(currency, (known = { format, digits: format.resolvedOptions().maximumFractionDigits! }));
  }
  return known.format.format(amount / 10 ** known.digits);
}

const toUser = (row: Row) => ({
  id: row.id,
  username: row.username,
  display_name: row.display_name ?? row.username,
  gamer: row.gamer,
  developer: row.developer,
  press_user: row.press_user,
  url: `https://${row.username}.${HOST}`,
  cover_url: row.cover_url,
});

const toEarnings = (row: Row) =>
  row.earnings.map((text) => {
    const currency = text.slice(0, 3);
    const amount = Number(text.slice(3));
    return { currency, amount_formatted: money(amount, currency), amount };
  });

const toGame = (row: Row) => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: `https://${row.owner_name}.${HOST}/${row.slug}`,
  cover_url: row.cover_url,
  type: row.type,
  classification: row.classification,
  traits: row.traits,
  published: row.published_at !== null,
  published_at: row.published_at && modern(row.published_at),
  created_at: modern(row.created_at),
  min_price: row.min_price,
  views_count: row.views_count,
  downloads_count: row.downloads_count,
  purchases_count: row.purchases_count,
  earnings: toEarnings(row),
});

const toLegacyGame = (row: Row) => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: `https://${row.owner_name}.${HOST}/${row.slug}`,
  cover_url: row.cover_url,
  type: row.type,
  p_android: row.traits.includes('p_android'),
  p_linux: row.traits.includes('p_linux'),
  p_osx: row.traits.includes('p_osx'),
  p_windows: row.traits.includes('p_windows'),
  published: row.published_at !== null,
  published_at: row.published_at && legacy(row.published_at),
  created_at: legacy(row.created_at),
  min_price: row.min_price,
  views_count: row.views_count,
  downloads_count: row.downloads_count,
  purchases_count: row.purchases_count,
  earnings: toEarnings(row),
});

const toPurchase = (row: Row, game_id: number) => ({
  id: row.id,
  donation: row.donation,
  email: row.email,
  created_at: modern(row.created_at),
  source: row.source,
  currency: row.currency,
  price: money(row.amount, row.currency),
  sale_rate: row.sale_rate,
  quantity: row.quantity,
  status: row.status,
  purchase_type: row.purchase_type,
  game_id: row.game_ids ?? game_id,
});

const toCollection = (row: Row) => ({
  id: row.id,
  title: row.title,
  url: `https://${HOST}/c/${row.id}/${row.title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')}`,
  user_id: row.user_id,
  games_count: row.games_count,
  private: row.private,
  description: row.description,
  layout: row.layout,
  has_game: row.has_game,
  created_at: modern(row.created_at),
  updated_at: modern(row.updated_at),
});

const toGameWithUser = (row: Row) => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: `https://${row.owner_name}.${HOST}/${row.slug}`,
  cover_url: row.cover_url,
  type: row.type,
  classification: row.classification,
  traits: row.traits,
  min_price: row.min_price,
  published_at: row.published_at && modern(row.published_at),
  created_at: modern(row.made_at),
  user_id: row.user_id,
  user: {
    id: row.user_id,
    username: row.username,
    display_name: row.display_name ?? row.username,
    url: `https://${row.username}.${HOST}`,
    cover_url: row.user_cover_url,
  },
});

const toOwnedKey = (row: Row) => ({
  id: row.key_id,
  game_id: row.id,
  purchase_id: row.purchase_id,
  created_at: modern(row.created_at),
  updated_at: modern(row.updated_at),
  downloads: row.downloads,
  game: toGameWithUser(row),
});

const toBundleKey = (row: Row) => ({
  id: row.purchase_id,
  bundle_id: row.id,
  purchase_id: row.purchase_id,
  created_at: modern(row.bought_at),
  bundle: {
    id: row.id,
    title: row.title,
    url: `https://${HOST}/b/${row.id}/${row.slug}`,
    cover_url: row.cover_url,
    games_count: row.games_count,
    version: row.version,
    created_at: modern(row.created_at),
    updated_at: modern(row.updated_at),
  },
});

const toBundleGame = (row: Row, bundle_id: number) => ({
  bundle_id,
  game_id: row.id,
  position: row.position,
  min_price: row.bundle_min_price,
  created_at: modern(row.added_at),
  updated_at: modern(row.moved_at),
  game: toGameWithUser(row),
});

const toCollectionGame = (row: Row) => ({
  collection_id: row.collection_id,
  game_id: row.game_id,
  position: row.position,
  blurb: row.blurb,
  user_id: row.user_id,
  created_at: modern(row.created_at),
  game: {
    id: row.game_id,
    title: row.title,
    short_text: row.short_text,
    url: `https://${row.owner_name}.${HOST}/${row.slug}`,
    cover_url: row.cover_url,
    type: row.type,
    classification: row.classification,
    traits: row.traits,
    min_price: row.min_price,
    published_at: row.published_at && modern(row.published_at),
    created_at: modern(row.made_at),
  },
});

export interface Credential extends Record<string, unknown> {
  user_id: number;
  scopes: string[] | null;
}

export async function findCredential(authorization: string | undefined): Promise<Credential | undefined> {
  if (!authorization?.startsWith('Bearer ')) return undefined;
  const hash = createHmac('sha256', API_KEY_PEPPER!).update(authorization.slice(7)).digest();
  return (await one('credential', CREDENTIAL, [hash])) as Credential | undefined;
}

export type Query = Record<string, string | undefined>;

/** The response's object, or undefined if it doesn't exist. */
export const responses = {
  credentialsInfo: (scopes: string[] | null) => ({
    type: 'key',
    scopes: scopes ?? ROOT_SCOPES,
  }),
  async profile(user: number) {
    const row = await one('user', USER, [user]);
    return row && { user: toUser(row) };
  },
  async profileGames(user: number) {
    return { games: (await many('games', GAMES, [user])).map(toGame) };
  },
  async legacyGames(user: number) {
    return { games: (await many('games', GAMES, [user])).map(toLegacyGame) };
  },
  async ownedKeys(user: number, query: Query) {
    const page = Number(query.page ?? 1);
    const per_page = Number(query.per_page ?? 50);
    const rows = await many('owned_keys', OWNED_KEYS, [user, per_page, (page - 1) * per_page]);
    return { page, per_page, owned_keys: rows.map(toOwnedKey) };
  },
  async ownedBundles(user: number) {
    return { bundle_keys: (await many('owned_bundles', OWNED_BUNDLES, [user])).map(toBundleKey) };
  },
  async bundleGames(user: number, id: number, query: Query) {
    const page = Number(query.page ?? 1);
    const per_page = Number(query.per_page ?? 100);
    const rows = await many('bundle_games', BUNDLE_GAMES, [user, id, per_page, (page - 1) * per_page]);
    if (rows.length === 0) return undefined;
    const bundle_games = rows[0]!.id === null ? [] : rows.map((row) => toBundleGame(row, id));
    return { page, per_page, bundle_games };
  },
  async game(user: number, id: number) {
    const row = await one('game', GAME, [id, user]);
    return row && { game: toGameWithUser(row) };
  },
  async ownership(user: number, id: number) {
    const row = await one('ownership', OWNERSHIP, [id, user]);
    return row && { owns: row.owns };
  },
  async downloadKey(user: number, game_id: number, { download_key, user_id, email }: Query) {
    const row = download_key
      ? await one('key_by_key', KEY_BY_KEY, [game_id, user, download_key])
      : user_id
        ? await one('key_by_user', KEY_BY_USER, [game_id, user, user_id])
        : await one('key_by_email', KEY_BY_EMAIL, [game_id, user, email]);
    if (!row || row.key_id === null) return undefined;
    const { key_id: id, created_at, downloads, key } = row;
    const owner = row.id === null ? undefined : toUser(row);
    return { download_key: { id, created_at: modern(created_at), downloads, key, game_id, owner } };
  },
  async purchases(user: number, game_id: number, { user_id, email }: Query) {
    const rows = user_id
      ? await many('purchases_by_user', PURCHASES_BY_USER, [game_id, user, user_id])
      : await many('purchases_by_email', PURCHASES_BY_EMAIL, [game_id, user, email]);
    if (rows.length === 0) return undefined;
    return { purchases: rows[0]!.id === null ? [] : rows.map((row) => toPurchase(row, game_id)) };
  },
  async collection(user: number, id: number) {
    const row = await one('collection', COLLECTION, [id, user]);
    return row && { collection: toCollection(row) };
  },
  async entries(user: number, id: number, query: Query) {
    const page = Number(query.page ?? 1);
    const per_page = Number(query.per_page ?? 100);
    const rows = await many('entries', ENTRIES, [id, user, per_page, (page - 1) * per_page]);
    if (rows.length === 0) return undefined;
    return { page, per_page, collection_games: rows[0]!.game_id === null ? [] : rows.map(toCollectionGame) };
  },
  async collections(user: number, { game_id }: Query) {
    return { collections: (await many('collections', COLLECTIONS, [user, game_id])).map(toCollection) };
  },
  async latest({ game_id, channel_name }: Query) {
    const row = await one('latest', LATEST, [game_id, channel_name]);
    return row?.id ? { latest: row.user_version ?? undefined } : undefined;
  },
};

const decoded = (text: string) => (text.includes('%') ? decodeURIComponent(text) : text);

function parseQuery(text: string): Query {
  const query: Query = {};
  for (const pair of text.split('&')) {
    const equals = pair.indexOf('=');
    query[pair.slice(0, equals)] = decoded(pair.slice(equals + 1));
  }
  return query;
}

export async function response(
  url: string,
  authorization: string | undefined,
): Promise<object | undefined | 401> {
  const question = url.indexOf('?');
  const path = question < 0 ? url : url.slice(0, question);
  const query = question < 0 ? {} : parseQuery(url.slice(question + 1));
  if (path === '/wharf/latest') return responses.latest(query);
  const credential = await findCredential(authorization);
  if (!credential) return 401;
  const user = credential.user_id;
  if (path === '/profile' || path === '/api/1/key/me') return responses.profile(user);
  if (path === '/profile/games') return responses.profileGames(user);
  if (path === '/api/1/key/my-games') return responses.legacyGames(user);
  if (path === '/profile/owned-keys') return responses.ownedKeys(user, query);
  if (path === '/profile/owned-bundles') return responses.ownedBundles(user);
  if (path === '/profile/collections') return responses.collections(user, query);
  if (path === '/credentials/info') return responses.credentialsInfo(credential.scopes);
  if (path === '/profile/builds')
    return pushes.ofProfile(user, Number(query.page ?? 1), Number(query.per_page ?? 50));
  const [, what, id, part, more] = path.split('/');
  if (what === 'wharf') {
    if (id === 'channels' && part === undefined) return pushes.channels(user, query.target!);
    if (id === 'channels') return pushes.channel(user, query.target!, part!);
    return more === undefined ? pushes.build(user, Number(part)) : pushes.files(user, Number(part));
  }
  if (what === 'builds' && part === 'upgrade-paths')
    return pushes.upgradePath(user, Number(id), Number(more));
  if (what === 'builds' && part === 'download') return pushes.signature(user, Number(id));
  if (what === 'bundles') return responses.bundleGames(user, Number(id), query);
  if (what === 'games' && part === undefined) return responses.game(user, Number(id));
  if (what === 'games' && part === 'ownership') return responses.ownership(user, Number(id));
  if (what === 'games' && part === 'uploads') return uploads.list(user, Number(id));
  if (what === 'uploads' && part === 'download') return uploads.download(user, Number(id));
  if (what === 'games' && part === 'download_keys') return responses.downloadKey(user, Number(id), query);
  if (what === 'games' && part === 'purchases') return responses.purchases(user, Number(id), query);
  if (what === 'collections' && part === 'collection-games')
    return responses.entries(user, Number(id), query);
  if (what === 'collections' && part === undefined) return responses.collection(user, Number(id));
  return undefined;
}

function send(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  res.end(text);
}

if (require.main === module) {
  const server = createServer((req, res) => {
    response(req.url!, req.headers.authorization).then(
      (found) => {
        if (found === 401) send(res, 401, { errors: ['invalid key'] });
        else if (found && 'location' in found)
          res.writeHead(302, { Location: String(found.location), 'Content-Length': 0 }).end();
        else if (found) send(res, 200, found);
        else send(res, 404, { errors: ['not found'] });
      },
      () => send(res, 500, { errors: ['internal server error'] }),
    );
  });
  server.keepAliveTimeout = 65_000;
  server.listen(Number(PORT), '127.0.0.1');
}
