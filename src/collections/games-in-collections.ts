/** Locks the collections with games `t` of a FROM item, in the order in which the service locks them. */
export const lockCollectionsWith = (games: string) => `
  SELECT c.id FROM collections c
  WHERE c.id IN (SELECT g.collection_id FROM ${games} JOIN collection_games g ON g.game_id = t.id)
  ORDER BY c.id FOR NO KEY UPDATE`;

/** Removes the games `t` from the locked collections. */
export const removeFromCollections = (games: string) => `
  WITH removed AS (
    DELETE FROM collection_games g USING ${games} WHERE g.game_id = t.id RETURNING g.collection_id
  )
  UPDATE collections c SET games_count = c.games_count - r.games, updated_at = now()
  FROM (SELECT collection_id, count(*) AS games FROM removed GROUP BY collection_id) r WHERE c.id = r.collection_id`;
