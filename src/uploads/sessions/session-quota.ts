/** Maximum number of bytes in the unfinished sessions for one owner's games, as a multiple of FILES_MAX_BYTES. */
const MAX_STORED_FILES = 4;

/** The unexpired sessions `o` of games with the owner of the game `g`. */
export const OF_OWNER =
  'FROM games og JOIN upload_sessions o ON o.game_id = og.id WHERE og.user_id = g.user_id AND o.expires_at > $now';

/** SQL condition: the owner of the game `g` may store more parts. `$max_bytes`: FILES_MAX_BYTES. */
export const HAS_QUOTA = `(SELECT coalesce(sum(o.received), 0) < ${MAX_STORED_FILES}::numeric * $max_bytes::bigint ${OF_OWNER})`;
