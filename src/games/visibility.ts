import { holdsKey } from './key-owners';

// Else PostgreSQL may read all games that the user administers, for one of them: docs/decisions/one-probe.md.
const ONE_PROBE = 'OFFSET 0';

/**
 * Who may edit and who may view a game, as conditions for a WHERE clause: `game` names a row of games in the statement,
 * `user` an expression for the user's id, such as `$1`.
 */
export const canEdit = (game: string, user: string) => editable(game, user, administers(game, user));

const editable = (game: string, user: string, administered: string) =>
  `(${game}.user_id = ${user} OR ${administered})`;

const administers = (game: string, user: string) =>
  `EXISTS (SELECT FROM game_admins ga WHERE ga.game_id = ${game}.id AND ga.user_id = ${user} ${ONE_PROBE})`;

/** Any game at all. The least of them, not EXISTS: that is found by index whatever the planner expects. */
const administersAny = (user: string) =>
  `(SELECT min(any_game.game_id) FROM game_admins any_game WHERE any_game.user_id = ${user}) IS NOT NULL`;

/** Shown to everyone, signed in or not. */
export const isPublic = (game: string) =>
  `(${game}.visibility = 'public' AND ${game}.published_at IS NOT NULL)`;

/** Public and published for everyone, restricted for those who hold a key to it too, all for those who can edit. */
export const canView = (game: string, user: string) => viewable(game, user, canEdit(game, user));

/** For a walk over many games: whether the user is an admin of any is found out once. */
export const canViewOfMany = (game: string, user: string) =>
  viewable(game, user, editable(game, user, `${administersAny(user)} AND ${administers(game, user)}`));

const viewable = (game: string, user: string, editable: string) => `(
  ${isPublic(game)}
  OR ${editable}
  OR (${game}.visibility = 'restricted' AND ${holdsKey(game, user)}))`;
