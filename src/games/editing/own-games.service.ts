import { Injectable } from '@nestjs/common';
import { EDITED_GAMES_PAGE } from '../edited-games';
import { invalidGame } from '../errors';
import type { Game } from '../game.entity';
import { GAME_ROW, type GameRow } from '../game.row';
import { canEdit } from '../visibility';
import { Database } from '../../platform/database/database';
import type { Packed } from '../../platform/database/packed-row';
import { prefixColumns, longRead, read } from '../../platform/database/statement';
import { type Cursor, NEWEST_CURSOR } from '../../platform/input/cursor';
import { type Build, isPublished } from '../../wharf/build.entity';

export const MAX_SHOWN_CHANNELS = 6;
export const MAX_COUNTED_UPLOADS = 1000;

const OWN_GAME_COLUMNS = [
  'id',
  'created_at',
  'title',
  'slug',
  'owner_name',
  'cover_url',
  'visibility',
  'published_at',
  'min_price',
  'views_count',
  'downloads_count',
  'purchases_count',
] as const satisfies (keyof Game)[];

export interface GameReport extends Pick<Game, (typeof OWN_GAME_COLUMNS)[number]> {
  /** The number of uploads, counted up to one more than MAX_COUNTED_UPLOADS. */
  uploads: number;
  /** The newest completed build of each channel, for one channel more than MAX_SHOWN_CHANNELS; null without builds. */
  builds: Pick<Build, 'channel_name' | 'user_version' | 'created_at'>[] | null;
}

// Reads one index entry per channel, however many builds it has.
const CHANNELS = `
  WITH RECURSIVE channels AS (
    SELECT min(channel_name) AS name FROM builds WHERE game_id = g.id
    UNION ALL
    SELECT (SELECT min(channel_name) FROM builds WHERE game_id = g.id AND channel_name > c.name)
    FROM channels c WHERE c.name IS NOT NULL)
  SELECT name FROM channels WHERE name IS NOT NULL LIMIT ${MAX_SHOWN_CHANNELS + 1}`;

const GAMES_PAGE = longRead<GameReport>(
  'games_page',
  `SELECT ${prefixColumns('g', OWN_GAME_COLUMNS)}, b.builds,
     (SELECT count(*) FROM (SELECT FROM uploads WHERE game_id = g.id LIMIT ${MAX_COUNTED_UPLOADS + 1}) counted) AS uploads
   FROM ${EDITED_GAMES_PAGE}
   CROSS JOIN LATERAL (
     SELECT json_agg(json_build_object('channel_name', c.name, 'user_version', newest.user_version,
              'created_at', newest.created_at::text) ORDER BY c.name) AS builds
     FROM (${CHANNELS}) c CROSS JOIN LATERAL (
       SELECT o.user_version, o.created_at FROM builds o
       WHERE o.game_id = g.id AND o.channel_name = c.name AND ${isPublished('o')} ORDER BY o.id DESC LIMIT 1) newest) b
   ORDER BY g.created_at DESC, g.id DESC`,
  'user $user_id',
);

/** A game, for users who can edit it. */
export interface OwnGame extends GameRow, Pick<Game, 'visibility'> {
  /** Whether the user is its owner, and not an admin. */
  owned: boolean;
}

const OWN_GAME = read<Packed & Pick<OwnGame, 'visibility' | 'owned'>>(
  'own_game',
  `SELECT ${GAME_ROW.sql}, g.visibility, g.user_id = $user_id AS owned FROM games g WHERE g.id = $id AND ${canEdit('g', '$user_id')}`,
);

const TITLE = read<Pick<Game, 'title'>>(
  'title_of_own_game',
  `SELECT title FROM games g WHERE g.id = $game_id AND ${canEdit('g', '$user_id')}`,
);

/** The games that a user can edit, as their pages show them. */
@Injectable()
export class OwnGamesService {
  constructor(private readonly database: Database) {}

  /** The games of a page, newest first, and one more if there is a next page. */
  page(user_id: number, { at, id }: Cursor = NEWEST_CURSOR): Promise<GameReport[]> {
    return this.database.rows(GAMES_PAGE, { user_id, at, id });
  }

  async one(id: number, user_id: number): Promise<OwnGame> {
    const row = await this.database.row(OWN_GAME, { id, user_id });
    if (!row) throw invalidGame();
    return { ...GAME_ROW.read(row), visibility: row.visibility, owned: row.owned };
  }

  /** Undefined if the user can't edit such a game. */
  async findTitle(game_id: number, user_id: number): Promise<string | undefined> {
    return (await this.database.row(TITLE, { game_id, user_id }))?.title;
  }
}
