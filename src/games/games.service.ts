import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { longStatement, statement } from '../database/statement';
import { GAME_WITH_USER_COLUMNS, type GameWithUserRow } from './embedded-game.dto';
import { GAME_COLUMNS, gameRow, type GameRow, type SelectedGame } from './game-row';
import { invalidGame } from './refusals';
import { canView } from './visibility';

export const EDITABLE_GAMES = longStatement<SelectedGame>(
  'editable_games',
  `SELECT ${GAME_COLUMNS}
   FROM (SELECT * FROM games WHERE user_id = $1
         UNION ALL
         SELECT g.* FROM game_admins ga JOIN games g ON g.id = ga.game_id
         WHERE ga.user_id = $1 AND g.user_id <> $1) g
   ORDER BY g.created_at DESC, g.id DESC`,
);

export const VIEWABLE_GAME = statement(
  'viewable_game',
  `SELECT g.id FROM games g WHERE g.id = $1 AND ${canView('g', '$2')}`,
);

export const GAME = statement<GameWithUserRow>(
  'game',
  `SELECT ${GAME_WITH_USER_COLUMNS} FROM games g JOIN users u ON u.id = g.user_id
   WHERE g.id = $1 AND ${canView('g', '$2')}`,
);

@Injectable()
export class GamesService {
  constructor(private readonly database: Database) {}

  /** The games that the user uploaded or administers, newest first. */
  async editableBy(user_id: number): Promise<GameRow[]> {
    const games = await this.database.rowsFor(user_id, EDITABLE_GAMES, [user_id]);
    return games.map(gameRow);
  }

  /** The game, for those who may view it. */
  async find(id: number, user_id: number): Promise<GameWithUserRow> {
    const game = await this.database.row(GAME, [id, user_id]);
    if (!game) throw invalidGame();
    return game;
  }

  async isViewableBy(id: number, user_id: number): Promise<boolean> {
    return (await this.database.row(VIEWABLE_GAME, [id, user_id])) !== undefined;
  }
}
