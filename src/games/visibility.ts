import { holdsKey } from '../purchases/ownership/key-owners';

// Without OFFSET 0, PostgreSQL may read all games that the user administers.
const ONE_PROBE = 'OFFSET 0';

/** Conditions for a WHERE clause: `game` is the alias of a game, `user` an expression such as `$user_id`. */
export const canEdit = (game: string, user: string) => editable(game, user, administers(game, user));

const editable = (game: string, user: string, administered: string) =>
  `(${game}.user_id = ${user} OR ${administered})`;

const administers = (game: string, user: string) =>
  `EXISTS (SELECT FROM game_admins ga WHERE ga.game_id = ${game}.id AND ga.user_id = ${user} ${ONE_PROBE})`;

/** Whether the user administers any game. min() always uses the index, unlike EXISTS. */
const administersAny = (user: string) =>
  `(SELECT min(any_game.game_id) FROM game_admins any_game WHERE any_game.user_id = ${user}) IS NOT NULL`;

export const editedBy = (user: string) =>
  `SELECT id FROM games WHERE user_id = ${user} UNION SELECT game_id FROM game_admins WHERE user_id = ${user}`;

export const isPublic = (game: string) =>
  `(${game}.visibility = 'public' AND ${game}.published_at IS NOT NULL)`;

/** Everyone can request the newest build of games that are not private, published or not. */
export const showsBuilds = (game: string) => `${game}.visibility <> 'private'`;

/** Everyone can view public, published games; key owners also restricted ones; editors all. */
export const canView = (game: string, user: string) => viewable(game, user, canEdit(game, user));

/** Checks only once, for many games, whether the user administers any. */
export const canViewOfMany = (game: string, user: string) =>
  viewable(game, user, editable(game, user, `${administersAny(user)} AND ${administers(game, user)}`));

const viewable = (game: string, user: string, editable: string) => `(
  ${isPublic(game)}
  OR ${editable}
  OR (${game}.visibility = 'restricted' AND ${holdsKey(game, user)}))`;
