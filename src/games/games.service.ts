import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import type { Packed } from '../platform/database/packed-row';
import { longRead, read, statement } from '../platform/database/statement';
import type { GameUserRow } from './embedded-game.dto';
import { GAME_ROW, GAME_WITH_USER_ROW, type GameRow, type GameWithUserRow } from './game.row';
import { invalidGame } from './errors';
import { type RowsOrSlices, SHORT_LIST } from '../platform/output/list-streams';
import { canEdit, canView } from './visibility';

const editableBy = (user: string, limit: string) => `(
  (SELECT * FROM games WHERE user_id = ${user} ${limit})
  UNION ALL
  (SELECT g.* FROM game_admins ga JOIN games g ON g.id = ga.game_id
   WHERE ga.user_id = ${user} AND g.user_id <> ${user} ${limit})) g`;

const NEWEST_GAMES_FIRST = 'g.created_at DESC, g.id DESC';
/** Maximum number of games that a small read returns. */
const MAX_FEW_GAMES = 25;

const editableGames = (limit: string) =>
  `SELECT ${GAME_ROW.sql} FROM ${editableBy('$user_id', limit)} ORDER BY ${NEWEST_GAMES_FIRST} ${limit}`;

// Each statement reads one row more than its limit, to detect a longer list.
const FEW_EDITABLE_GAMES = read<Packed>('few_editable_games', editableGames(`LIMIT ${MAX_FEW_GAMES + 1}`));
const EDITABLE_GAMES = longRead<Packed>(
  'editable_games',
  editableGames(`LIMIT ${SHORT_LIST.rows + 1}`),
  'user $user_id',
);

const GAMES_PER_SLICE = 200;

const GAME_ID_SLICES = longRead<{ ids: string }>(
  'editable_games_slices',
  `SELECT array_agg(id ORDER BY place)::text AS ids
   FROM (SELECT g.id, row_number() OVER (ORDER BY ${NEWEST_GAMES_FIRST}) AS place FROM ${editableBy('$user_id', '')}) g
   GROUP BY (place - 1) / ${GAMES_PER_SLICE} ORDER BY (place - 1) / ${GAMES_PER_SLICE}`,
  'user $user_id',
);

const GAMES_OF_SLICE = longRead<Packed>(
  'editable_games_slice',
  `SELECT ${GAME_ROW.sql}
   FROM unnest($ids::bigint[]) WITH ORDINALITY AS listed (id, place) JOIN games g ON g.id = listed.id
   WHERE ${canEdit('g', '$user_id')} ORDER BY listed.place`,
  'user $user_id',
);

const OWNERS = longRead<GameUserRow & { game_id: number }>(
  'owners_of_games',
  `SELECT g.id AS game_id, u.id AS owner_id, u.username, u.display_name, u.cover_url AS owner_cover_url
   FROM games g JOIN users u ON u.id = g.user_id WHERE g.id = ANY ($game_ids::bigint[])`,
);

const GAME_WITH_OWNER = read<Packed>(
  'game',
  `SELECT ${GAME_WITH_USER_ROW.sql} FROM games g JOIN users u ON u.id = g.user_id
   WHERE g.id = $id AND ${canView('g', '$user_id')}`,
);

/** Locks in the order of the IDs, because replicas count concurrently. */
export const ADD_DOWNLOADS = statement(
  'add_downloads',
  `WITH locked AS MATERIALIZED (
     SELECT g.id, added.downloads FROM unnest($ids::bigint[], $counts::bigint[]) AS added (id, downloads)
     JOIN games g ON g.id = added.id ORDER BY g.id FOR NO KEY UPDATE OF g)
   UPDATE games g SET downloads_count = g.downloads_count + l.downloads FROM locked l WHERE g.id = l.id`,
);

/** Adds `purchases` of the rows `changes`, one per game, to the counts of games that the caller has locked. */
export const addToPurchasesCount = (changes: string) => `
  UPDATE games t SET purchases_count = t.purchases_count + d.purchases
  FROM ${changes} d WHERE t.id = d.game_id AND d.purchases <> 0 RETURNING t.id`;

@Injectable()
export class GamesService {
  constructor(private readonly database: Database) {}

  /** The games that the user uploaded or administers, newest first. */
  async editableBy(user_id: number): Promise<RowsOrSlices<GameRow>> {
    let games = await this.database.rows(FEW_EDITABLE_GAMES, { user_id });
    if (games.length > MAX_FEW_GAMES) games = await this.database.rows(EDITABLE_GAMES, { user_id });
    return games.length <= SHORT_LIST.rows ? games.map(GAME_ROW.read) : this.gameSlices(user_id);
  }

  async editableWithOwners(user_id: number): Promise<RowsOrSlices<GameRow & GameUserRow>> {
    const games = await this.editableBy(user_id);
    return Array.isArray(games) ? this.withOwners(games) : this.slicesWithOwners(games);
  }

  private async *slicesWithOwners(
    slices: AsyncIterable<GameRow[]>,
  ): AsyncGenerator<(GameRow & GameUserRow)[]> {
    for await (const games of slices) yield await this.withOwners(games);
  }

  /** Leaves out games that were deleted in the meantime. */
  private async withOwners(games: GameRow[]): Promise<(GameRow & GameUserRow)[]> {
    const owners = await this.database.rows(OWNERS, { game_ids: games.map(({ id }) => id) });
    const ownerByGame = new Map(owners.map((owner) => [owner.game_id, owner]));
    return games.flatMap((game) => {
      const owner = ownerByGame.get(game.id);
      return owner ? [{ ...game, ...owner }] : [];
    });
  }

  /** The first statement selects and orders the games; the others read them. */
  private async *gameSlices(user_id: number): AsyncGenerator<GameRow[]> {
    for (const { ids } of await this.database.rows(GAME_ID_SLICES, { user_id }))
      yield (await this.database.rows(GAMES_OF_SLICE, { user_id, ids })).map(GAME_ROW.read);
  }

  async find(id: number, user_id: number): Promise<GameWithUserRow> {
    const game = await this.database.row(GAME_WITH_OWNER, { id, user_id });
    if (!game) throw invalidGame();
    return GAME_WITH_USER_ROW.read(game);
  }
}
