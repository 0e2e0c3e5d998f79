import type { Client } from 'pg';
import { apiKey } from './workload';

export const OWNER = 1;
const TITLE = 'made by the benchmark';

export interface WrittenCollections {
  owner: number;
  ids: number[];
  games: number[];
}

/** Collections of the requested number of games, out of twice as many, with the same owner; recreated in every run. */
export async function makeCollections(
  client: Client,
  collections: number,
  games_in_each: number,
): Promise<WrittenCollections> {
  await removeCollections(client);
  const { rows: games } = await client.query<{ id: number }>(
    `SELECT id FROM games WHERE visibility = 'public' AND published_at IS NOT NULL ORDER BY id LIMIT $1`,
    [2 * games_in_each],
  );
  const { rows } = await client.query<{ id: number; user_id: number }>(
    `WITH made AS (
       INSERT INTO collections (user_id, title, games_count)
       SELECT k.user_id, '${TITLE}', $3 FROM api_keys k, generate_series(1, $2) WHERE k.id = ${OWNER}
       RETURNING id, user_id),
     entries AS (
       INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
       SELECT made.id, game.id, game.place, made.user_id
       FROM made, unnest($1::bigint[]) WITH ORDINALITY AS game (id, place) WHERE game.place <= $3)
     SELECT id, user_id FROM made`,
    [games.map(({ id }) => id), collections, games_in_each],
  );
  await client.query('VACUUM (ANALYZE) collections, collection_games');
  return {
    owner: Number(rows[0]!.user_id),
    ids: rows.map(({ id }) => Number(id)),
    games: games.map(({ id }) => Number(id)),
  };
}

/** Removes the collections, including those that requests created with the same title. */
export const removeCollections = (client: Client) =>
  client.query('DELETE FROM collections WHERE title = $1', [TITLE]);

export const titleField = `title=${encodeURIComponent(TITLE)}`;
export const TITLE_LITERAL = `'${TITLE}'`;

/** Collections whose count does not match their contents; there must be none. */
export const miscounted = (client: Client) =>
  client.query(
    `SELECT c.id FROM collections c
     WHERE c.title = $1 AND c.games_count <> (SELECT count(*) FROM collection_games e WHERE e.collection_id = c.id)`,
    [TITLE],
  );

/** Generates the same numbers in every run, so that every run sends the same requests. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export const post = (path: string, body: string, key = OWNER) =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${apiKey(key)}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
