import type { Pool, PoolClient } from 'pg';
import {
  baseCollections,
  COLLECTION_CREATED,
  spareGames,
  type Tenant,
  USERS,
} from '../../../test/support/world/world';

/** Restores a tenant's rows to their state before the first request. */
export async function reset(sql: Pool, tenant: Tenant): Promise<void> {
  const users = USERS.map((n) => tenant.user(n));
  await inTransaction(sql, async (client) => {
    await client.query('DELETE FROM collections WHERE user_id = ANY($1)', [users]);
    await putBaseCollections(client, tenant);
  });
}

async function inTransaction(sql: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await sql.connect();
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

/** Restores what independent requests deleted, and deletes what they created and nothing else will read. */
export async function restoreRows(sql: Pool, tenant: Tenant): Promise<void> {
  await sql.query(
    `DELETE FROM collections
     WHERE user_id = ANY($1) AND created_at BETWEEN $2::timestamptz + interval '1 day' AND now() - interval '10 s'`,
    [USERS.map((n) => tenant.user(n)), COLLECTION_CREATED],
  );
  for (const { id, owner } of spareGames(tenant))
    await sql.query(
      `INSERT INTO games (id, user_id, slug, title) VALUES ($1, $2, 'spare-' || $1::bigint, 'Spare') ON CONFLICT DO NOTHING`,
      [id, owner],
    );
  await inTransaction(sql, (client) => putBaseCollections(client, tenant));
}

/** Adds missing base collections, and leaves existing ones unchanged. */
async function putBaseCollections(client: PoolClient, tenant: Tenant): Promise<void> {
  for (const { id, user_id, admins, games, ...collection } of baseCollections(tenant)) {
    const { rowCount } = await client.query(
      `INSERT INTO collections (id, user_id, title, private, games_count, created_at, updated_at)
       VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING`,
      [id, user_id, `Base ${id}`, collection.private, games.length, COLLECTION_CREATED],
    );
    if (rowCount === 0) continue;
    await client.query('INSERT INTO collection_admins SELECT $1, unnest($2::bigint[])', [id, admins]);
    await client.query(
      `INSERT INTO collection_games (collection_id, game_id, sort_key, user_id, created_at)
       SELECT $1, game_id, n, $2, $3 FROM unnest($4::bigint[]) WITH ORDINALITY AS g (game_id, n)`,
      [id, user_id, COLLECTION_CREATED, games],
    );
  }
}

interface CollectionRows {
  games_count: number;
  updated_at: string;
  entries: { game_id: number; blurb: string | null; user_id: number }[];
}

export async function readCollection(sql: Pool, id: number): Promise<CollectionRows> {
  const { rows } = await sql.query<CollectionRows>(
    `SELECT games_count, updated_at::text, (
       SELECT coalesce(json_agg(json_build_object('game_id', game_id, 'blurb', blurb, 'user_id', user_id) ORDER BY sort_key), '[]')
       FROM collection_games WHERE collection_id = c.id) AS entries
     FROM collections c WHERE id = $1`,
    [id],
  );
  return rows[0]!;
}
