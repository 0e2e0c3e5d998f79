import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { longStatement, statement } from '../database/statement';
import type { GameRow } from './game.dto';
import { canView } from './visibility';

export const EDITABLE_GAMES = longStatement(
  'editable_games',
  `SELECT g.id, (SELECT username FROM users WHERE id = g.user_id) AS username, g.slug, g.title, g.short_text,
          g.cover_url, g.type, g.classification, g.traits, g.published_at, g.created_at, g.min_price, g.views_count,
          g.downloads_count, g.purchases_count,
          ARRAY(SELECT currency || amount FROM game_earnings ge
                WHERE ge.game_id = g.id ORDER BY currency) AS earnings
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

@Injectable()
export class GamesService {
  constructor(private readonly database: Database) {}

  /** The games that the user uploaded or administers, newest first. */
  editableBy(user_id: number): Promise<GameRow[]> {
    return this.database.rowsFor<GameRow & { id: number }>(user_id, EDITABLE_GAMES, [user_id]);
  }

  async isViewableBy(id: number, user_id: number): Promise<boolean> {
    return (await this.database.row(VIEWABLE_GAME, [id, user_id])) !== undefined;
  }
}
