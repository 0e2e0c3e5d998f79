import type { Client } from 'pg';
import { demoApiKey } from '../../test/support/large-demo';
import { BUNDLES, FIRST_BUNDLE, GAMES_OF_BUNDLE } from './bundles';
import { GAMES_OF_PLAYER, keyOfPlayer, PLAYERS } from './players';
import { SEED, type Store } from './store';

/** One request of a workload: a path, and the number of the demo key that sends it; 0: anonymous. */
export interface Ask {
  path: string;
  key: number;
}

export interface Endpoint {
  name: string;
  /** The number of requests, if repeating one would benefit a server's cache. */
  requests?: number;
  /** The stock Nest server doesn't implement it. */
  withoutStock?: true;
  /**
   * The path of the endpoint on the comparison servers, and its requests in random order, spread over the whole store.
   */
  asks(client: Client, store: Store, count: number): Promise<Ask[]>;
}

// One user in ten is a developer, starting with the first; the n-th developer has the n-th key.
const USERS_A_DEVELOPER = 10;
const apiKeyNumber = (user: number) => (user - 1) / USERS_A_DEVELOPER + 1;

export const apiKey = (n: number) => demoApiKey(SEED, n);

/** A seeded generator, so that every run requests the same. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Below = (limit: number) => number;

function drawn(count: number, ask: (below: Below, next: () => number) => Ask): Ask[] {
  const next = seededRandom(7);
  return Array.from({ length: count }, () => ask((limit) => Math.floor(next() * limit), next));
}

/** Requests for random rows of the store: $1 of them. */
async function found(
  client: Client,
  count: number,
  sql: string,
  path: (row: Record<string, string>) => string,
): Promise<Ask[]> {
  await client.query(`SELECT setseed(0.7)`);
  const { rows } = await client.query<Record<string, string>>(`${sql} ORDER BY random() LIMIT $1`, [count]);
  return rows.map((row) => ({ path: path(row), key: apiKeyNumber(Number(row.owner)) }));
}

/** Requests of developers, without a row to find. */
const keyed = (name: string, path: (below: Below, size: Store['size']) => string): Endpoint => ({
  name,
  asks: (_, { size }, count) =>
    Promise.resolve(drawn(count, (below) => ({ path: path(below, size), key: 1 + below(size.api_keys) }))),
});

/** Requests of developers for rows that everybody can see. */
const visible = (name: string, rows: typeof GAMES, path: (id: string) => string): Endpoint => ({
  name,
  asks: (client, { size }, count) => visibleRows(client, size, count, rows(size), path),
});

const GAMES = (_: Store['size']) => `games WHERE visibility = 'public' AND published_at IS NOT NULL`;
// The last collection is left out, because it has thousands of games.
const COLLECTIONS = ({ collections }: Store['size']) =>
  `collections WHERE NOT private AND id <= ${collections}`;

// Leaves out the players' keys.
const KEYS_OF_GAMES = ({ download_keys }: Store['size']) =>
  `SELECT g.user_id AS owner, g.id AS game, dk.key, dk.user_id, dk.email
   FROM download_keys dk JOIN games g ON g.id = dk.game_id
   WHERE dk.revoked_at IS NULL AND dk.id <= ${download_keys}`;
const PURCHASES_OF_GAMES = ({ purchases }: Store['size']) =>
  `SELECT g.user_id AS owner, g.id AS game, p.email
   FROM purchases p JOIN purchase_games pg ON pg.purchase_id = p.id JOIN games g ON g.id = pg.game_id
   WHERE p.status = 'complete' AND p.id <= ${purchases}`;

const OWNED_BY_DEVELOPERS = ({ download_keys }: Store['size']) =>
  `SELECT account_id AS owner, game_id AS game FROM download_keys
   WHERE revoked_at IS NULL AND account_id % ${USERS_A_DEVELOPER} = 1 AND id <= ${download_keys}`;

const PUSHED = `FROM builds b JOIN games g ON g.id = b.game_id WHERE b.parent_build_id IS NOT NULL`;
const PUSHED_BUILDS = () => `SELECT g.user_id AS owner, b.id ${PUSHED}`;
const PUSHED_CHANNELS = () =>
  `SELECT * FROM (
     SELECT DISTINCT g.user_id AS owner, g.owner_name || '/' || g.slug AS target, b.channel_name AS channel ${PUSHED}) channels`;
const target = (row: Record<string, string>) => `target=${encodeURIComponent(row.target!)}`;

/** Rank r, from 0, is requested 1/(r + 1) as often as the first. */
const zipf = (size: number, next: () => number) =>
  Math.min(size, Math.floor(Math.exp(next() * Math.log(size + 1)))) - 1;

/** Requests of the developers for their own games. */
const lookup = (
  name: string,
  sql: (size: Store['size']) => string,
  path: (row: Record<string, string>) => string,
): Endpoint => ({
  name,
  withoutStock: true,
  asks: (client, { size }, count) => found(client, count, sql(size), path),
});

export const READS: Endpoint[] = [
  keyed('credentials/info', () => '/credentials/info'),
  keyed('profile', () => '/profile'),
  keyed('profile/games', () => '/profile/games'),
  {
    name: 'profile/owned-keys',
    withoutStock: true,
    asks: (_, { size }, count) =>
      Promise.resolve(
        drawn(count, (below) => ({
          path: `/profile/owned-keys?page=${1 + below(10)}`,
          key: keyOfPlayer(size, 1 + below(PLAYERS)),
        })),
      ),
  },
  {
    name: 'profile/owned-bundles',
    withoutStock: true,
    asks: (_, { size }, count) =>
      Promise.resolve(
        drawn(count, (below) => ({
          path: '/profile/owned-bundles',
          key: keyOfPlayer(size, 1 + below(PLAYERS)),
        })),
      ),
  },
  {
    name: 'bundles/ID/bundle-games',
    withoutStock: true,
    asks: (_, { size }, count) =>
      Promise.resolve(
        drawn(count, (below) => ({
          path: `/bundles/${FIRST_BUNDLE + below(BUNDLES)}/bundle-games?page=${1 + below(Math.ceil(GAMES_OF_BUNDLE / 100))}`,
          key: keyOfPlayer(size, 1 + below(PLAYERS)),
        })),
      ),
  },
  visible('games/ID', GAMES, (game) => `/games/${game}`),
  {
    name: 'games/ID/ownership',
    withoutStock: true,
    asks: async (client, { size }, count) => {
      const path = (game: string) => `/games/${game}/ownership`;
      const any = await visibleRows(client, size, count, GAMES(size), path);
      const owned = await found(client, count, OWNED_BY_DEVELOPERS(size), ({ game }) => path(game!));
      return any.map((ask, i) => (i % 2 === 0 ? ask : owned[i % owned.length]!));
    },
  },
  {
    name: 'games/ID/uploads',
    withoutStock: true,
    asks: (client, { size }, count) =>
      ofPlayers(client, size, count, 'game_id', (id) => `/games/${id}/uploads`),
  },
  {
    name: 'uploads/ID/download',
    withoutStock: true,
    asks: (client, { size }, count) =>
      ofPlayers(client, size, count, 'u.id', (id) => `/uploads/${id}/download`),
  },
  lookup(
    'download_keys by key',
    KEYS_OF_GAMES,
    ({ game, key }) => `/games/${game}/download_keys?download_key=${key}`,
  ),
  lookup(
    'download_keys by user',
    (size) => `${KEYS_OF_GAMES(size)} AND dk.user_id IS NOT NULL`,
    ({ game, user_id }) => `/games/${game}/download_keys?user_id=${user_id}`,
  ),
  lookup(
    'download_keys by email',
    (size) => `${KEYS_OF_GAMES(size)} AND dk.email IS NOT NULL`,
    ({ game, email }) => `/games/${game}/download_keys?email=${encodeURIComponent(email!)}`,
  ),
  lookup(
    'purchases',
    PURCHASES_OF_GAMES,
    ({ game, email }) => `/games/${game}/purchases?email=${encodeURIComponent(email!)}`,
  ),
  visible('collections/ID', COLLECTIONS, (collection) => `/collections/${collection}`),
  visible(
    'collection-games at 100',
    COLLECTIONS,
    (collection) => `/collections/${collection}/collection-games`,
  ),
  keyed(
    'collection-games at 500',
    (below, { collections }) =>
      `/collections/${collections + 1}/collection-games?per_page=500&page=${1 + below(10)}`,
  ),
  {
    ...keyed(
      'profile/collections?game_id',
      (below, { games }) => `/profile/collections?game_id=${1 + below(games)}`,
    ),
    withoutStock: true,
  },
  {
    name: 'wharf/latest',
    requests: 500_000,
    asks: async (client, _, count) => {
      const { rows } = await client.query<{ path: string }>(
        `SELECT DISTINCT format('/wharf/latest?game_id=%s&channel_name=%s', game_id, channel_name) AS path,
           md5(game_id || channel_name) AS rank
         FROM builds b JOIN games g ON g.id = b.game_id
         WHERE b.state = 'completed' AND g.visibility <> 'private' ORDER BY rank`,
      );
      return drawn(count, (_below, next) => ({ path: rows[zipf(rows.length, next)]!.path, key: 0 }));
    },
  },
  lookup('wharf/channels', PUSHED_CHANNELS, (row) => `/wharf/channels?${target(row)}`),
  lookup('wharf/channels/CHANNEL', PUSHED_CHANNELS, (row) => `/wharf/channels/${row.channel}?${target(row)}`),
  lookup('wharf/builds/ID', PUSHED_BUILDS, ({ id }) => `/wharf/builds/${id}`),
  lookup('wharf/builds/ID/files', PUSHED_BUILDS, ({ id }) => `/wharf/builds/${id}/files`),
  { ...keyed('profile/builds', (below) => `/profile/builds?page=${1 + below(2)}`), withoutStock: true },
  {
    name: 'builds/ID/upgrade-paths/ID',
    withoutStock: true,
    asks: (client, { size }, count) => {
      const path = `(SELECT min(o.id) FROM builds o
        WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name) || '/upgrade-paths/' || b.id`;
      return ofPlayers(client, size, count, path, (ids) => `/builds/${ids}`, PUSHED_BUILD);
    },
  },
  {
    name: 'builds/ID/download/signature',
    withoutStock: true,
    asks: (client, { size }, count) =>
      ofPlayers(
        client,
        size,
        count,
        'b.id',
        (id) => `/builds/${id}/download/signature/default`,
        PUSHED_BUILD,
      ),
  },
  keyed('legacy me', () => '/api/1/key/me'),
  { ...keyed('legacy my-games', () => '/api/1/key/my-games'), withoutStock: true },
];

const PUSHED_BUILD = 'builds b ON b.game_id = dk.game_id AND b.parent_build_id IS NOT NULL';

/** Games that the players own, uploads `u` of those, or what else is joined. */
async function ofPlayers(
  client: Client,
  size: Store['size'],
  count: number,
  column: string,
  path: (id: string) => string,
  joined = 'uploads u USING (game_id)',
): Promise<Ask[]> {
  await client.query(`SELECT setseed(0.7)`);
  const { rows } = await client.query<{ id: string; player: string }>(
    `SELECT id, player FROM (
       SELECT DISTINCT ${column} AS id, 1 + (dk.id - $1 - 1) / ${GAMES_OF_PLAYER} AS player
       FROM download_keys dk JOIN ${joined} WHERE dk.id > $1) owned
     ORDER BY random() LIMIT $2`,
    [size.download_keys, count],
  );
  return rows.map(({ id, player }) => ({ path: path(id), key: keyOfPlayer(size, Number(player)) }));
}

async function visibleRows(
  client: Client,
  size: Store['size'],
  count: number,
  rows: string,
  path: (id: string) => string,
): Promise<Ask[]> {
  const { rows: found } = await client.query<{ id: string }>(`SELECT id FROM ${rows} ORDER BY id`);
  return drawn(count, (below) => ({
    path: path(found[below(found.length)]!.id),
    key: 1 + below(size.api_keys),
  }));
}
