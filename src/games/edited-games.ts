export const EDITED_GAMES_ON_A_PAGE = 20;

/** A page of the games that the user can edit, newest first, beginning after a time and an ID. */
export const EDITED_GAMES_PAGE = `(
  SELECT id FROM (
    SELECT id, created_at FROM games WHERE user_id = $user_id
    UNION SELECT g.id, g.created_at FROM game_admins ga JOIN games g ON g.id = ga.game_id WHERE ga.user_id = $user_id) own
  WHERE (created_at, id) < ($at::timestamptz, $id)
  ORDER BY created_at DESC, id DESC LIMIT ${EDITED_GAMES_ON_A_PAGE + 1}) page
  JOIN games g ON g.id = page.id`;
