import { createHash, randomBytes } from 'node:crypto';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { Actor, anonymous, type Fields } from './actor';
import { PEPPER } from './app';
import { sql } from './sql';

let serial = 0;

async function insert<Row extends { id: number }>(table: string, fields: Fields): Promise<Row> {
  const names = Object.keys(fields);
  const places = names.map((_, i) => `$${i + 1}`);
  const [row] = await sql<Row>(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')}) RETURNING *`,
    Object.values(fields),
  );
  return row!;
}

type Owner = { id: number };

/** Rows with the required fields only. */
export const make = {
  async user(fields: Fields & { emails?: { email: string; verified: boolean }[] } = {}): Promise<Actor> {
    const { emails = [], ...columns } = fields;
    const username = String(columns.username ?? `user${++serial}`);
    const { id } = await insert('users', { ...columns, username });
    for (const { email, verified } of emails)
      await sql('INSERT INTO user_emails (user_id, email, verified) VALUES ($1, lower($2), $3)', [
        id,
        email,
        verified,
      ]);
    return new Actor(id, username, await make.key({ owner: { id } }));
  },

  /** An API key as text; unscoped without `scopes`. */
  async key({
    owner,
    scopes = null,
    text: key = randomBytes(20).toString('hex'),
  }: {
    owner: Owner;
    scopes?: string[] | null;
    text?: string;
  }): Promise<string> {
    await insert('api_keys', {
      key_hash: hashApiKey(key, Buffer.from(PEPPER)),
      hint: key.slice(0, 4),
      user_id: owner.id,
      scopes,
    });
    return key;
  },

  async game({ owner, admins = [], ...fields }: Fields & { owner: Owner; admins?: Owner[] }) {
    const n = ++serial;
    const game = await insert<{ id: number; slug: string; title: string }>('games', {
      user_id: owner.id,
      slug: `game-${n}`,
      title: `Game ${n}`,
      published_at: '2024-05-06T07:08:09Z',
      ...fields,
    });
    for (const admin of admins)
      await sql('INSERT INTO game_admins (game_id, user_id) VALUES ($1, $2)', [game.id, admin.id]);
    return game;
  },

  async purchase({ games, ...fields }: Fields & { games: Owner[] }) {
    const purchase = await insert('purchases', {
      email: `buyer${++serial}@example.com`,
      source: 'card',
      currency: 'USD',
      amount: 500,
      ...fields,
    });
    for (const game of games)
      await sql('INSERT INTO purchase_games (purchase_id, game_id) VALUES ($1, $2)', [purchase.id, game.id]);
    return purchase;
  },

  async bundle({ owner, games, ...fields }: Fields & { owner: Owner; games: Owner[] }) {
    const n = ++serial;
    const bundle = await insert<{ id: number; slug: string; title: string }>('bundles', {
      user_id: owner.id,
      slug: `bundle-${n}`,
      title: `Bundle ${n}`,
      games_count: games.length,
      ...fields,
    });
    await sql(
      `INSERT INTO bundle_games (bundle_id, game_id, position)
       SELECT $1, * FROM unnest($2::bigint[]) WITH ORDINALITY`,
      [bundle.id, games.map(({ id }) => id)],
    );
    return bundle;
  },

  async downloadKey({ game, ...fields }: Fields & { game: Owner }) {
    return insert<{ id: number; key: string }>('download_keys', {
      key: createHash('sha256').update(`key ${++serial}`).digest('base64url').slice(0, 24),
      game_id: game.id,
      ...fields,
    });
  },

  async collection({
    owner,
    admins = [],
    games = [],
    ...fields
  }: Fields & { owner: Owner; admins?: Owner[]; games?: Owner[] }) {
    const collection = await insert('collections', {
      user_id: owner.id,
      title: `Collection ${++serial}`,
      games_count: games.length,
      ...fields,
    });
    for (const admin of admins)
      await sql('INSERT INTO collection_admins (collection_id, user_id) VALUES ($1, $2)', [
        collection.id,
        admin.id,
      ]);
    for (const [i, game] of games.entries())
      await sql(
        'INSERT INTO collection_games (collection_id, game_id, sort_key, user_id) VALUES ($1, $2, $3, $4)',
        [collection.id, game.id, i + 1, owner.id],
      );
    return collection;
  },

  async build({ game, ...fields }: Fields & { game: Owner }) {
    return insert('builds', { game_id: game.id, channel_name: 'windows', ...fields });
  },

  /** An upload, which is a hosted file unless the fields contain another source. */
  async upload({ game, ...fields }: Fields & { game: Owner }) {
    const hosted = { file_key: 'moon/moon.zip', size: 42 };
    const source = 'channel_name' in fields || 'external_url' in fields || 'size' in fields ? {} : hosted;
    return insert('uploads', { game_id: game.id, filename: 'moon.zip', ...source, ...fields });
  },
};

/** The users of most tests: an owner, an admin, a developer of other games, and an unrelated user. */
export async function actors() {
  return {
    owner: await make.user({ developer: true }),
    admin: await make.user({ developer: true }),
    developer: await make.user({ developer: true }),
    stranger: await make.user(),
    anonymous,
  };
}

/** The users, and a game of the owner with this admin for each test, as `store.owner` and `store.game`. */
export function useGame() {
  const store = {} as Awaited<ReturnType<typeof actors>> & { game: Awaited<ReturnType<typeof make.game>> };
  beforeAll(async () => void Object.assign(store, await actors()));
  beforeEach(async () => {
    store.game = await make.game({ owner: store.owner, admins: [store.admin] });
  });
  return store;
}
