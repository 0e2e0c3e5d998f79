import { Injectable } from '@nestjs/common';
import { invalidGame } from '../../games/errors';
import type { Game } from '../../games/game.entity';
import { GAME_ROW, type GameRow } from '../../games/game.row';
import { canEdit } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import type { Packed } from '../../platform/database/packed-row';
import { prefixColumns, longRead, read } from '../../platform/database/statement';
import { type Cursor, NEWEST } from '../../platform/input/cursor';
import { type Build, isPublished } from '../../wharf/build.entity';

export const GAMES_ON_A_PAGE = 20;
export const MAX_CHANNELS = 6;
export const MAX_UPLOADS = 1000;
export const MAX_COUNTED_KEYS = 1000;

const COLUMNS = [
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

export interface GameReport extends Pick<Game, (typeof COLUMNS)[number]> {
  /** The number of uploads, counted up to one more than MAX_UPLOADS. */
  uploads: number;
  /** The newest completed build of each channel, for one channel more than MAX_CHANNELS; null without builds. */
  builds: Pick<Build, 'channel_name' | 'user_version' | 'created_at'>[] | null;
}

// Reads one index entry per channel, however many builds it has.
const CHANNELS = `
  WITH RECURSIVE channels AS (
    SELECT min(channel_name) AS name FROM builds WHERE game_id = g.id
    UNION ALL
    SELECT (SELECT min(channel_name) FROM builds WHERE game_id = g.id AND channel_name > c.name)
    FROM channels c WHERE c.name IS NOT NULL)
  SELECT name FROM channels WHERE name IS NOT NULL LIMIT ${MAX_CHANNELS + 1}`;

/** A page of the games that the user can edit, newest first, beginning after a time and an ID. */
const PAGE = `(
  SELECT id FROM (
    SELECT id, created_at FROM games WHERE user_id = $user_id
    UNION SELECT g.id, g.created_at FROM game_admins ga JOIN games g ON g.id = ga.game_id WHERE ga.user_id = $user_id) own
  WHERE (created_at, id) < ($at::timestamptz, $id)
  ORDER BY created_at DESC, id DESC LIMIT ${GAMES_ON_A_PAGE + 1}) page
  JOIN games g ON g.id = page.id`;

const GAMES_PAGE = longRead<GameReport>(
  'games_page',
  `SELECT ${prefixColumns('g', COLUMNS)}, b.builds,
     (SELECT count(*) FROM (SELECT FROM uploads WHERE game_id = g.id LIMIT ${MAX_UPLOADS + 1}) counted) AS uploads
   FROM ${PAGE}
   CROSS JOIN LATERAL (
     SELECT json_agg(json_build_object('channel_name', c.name, 'user_version', newest.user_version,
              'created_at', newest.created_at::text) ORDER BY c.name) AS builds
     FROM (${CHANNELS}) c CROSS JOIN LATERAL (
       SELECT o.user_version, o.created_at FROM builds o
       WHERE o.game_id = g.id AND o.channel_name = c.name AND ${isPublished('o')} ORDER BY o.id DESC LIMIT 1) newest) b
   ORDER BY g.created_at DESC, g.id DESC`,
  'user $user_id',
);

export interface KeysReport extends Pick<Game, 'id' | 'created_at' | 'title'> {
  /** Keys without a purchase, at most one more than MAX_COUNTED_KEYS. */
  created: number;
  /** Created keys that any player can redeem, at most one more than MAX_COUNTED_KEYS. */
  unclaimed: number;
}

const KEYS_OF_GAME = 'FROM download_keys WHERE game_id = g.id AND purchase_id IS NULL';

const KEYS_PAGE = longRead<KeysReport>(
  'games_with_keys_page',
  `SELECT g.id, g.created_at, g.title,
     (SELECT count(*) FROM (SELECT ${KEYS_OF_GAME} LIMIT ${MAX_COUNTED_KEYS + 1}) counted) AS created,
     (SELECT count(*) FROM (SELECT ${KEYS_OF_GAME} AND email IS NULL AND user_id IS NULL AND revoked_at IS NULL
                            LIMIT ${MAX_COUNTED_KEYS + 1}) counted) AS unclaimed
   FROM ${PAGE} ORDER BY g.created_at DESC, g.id DESC`,
  'user $user_id',
);

/** A game, for users who can edit it. */
export interface OwnGame extends GameRow, Pick<Game, 'visibility'> {
  /** Whether the user is its owner, and not an admin. */
  owned: boolean;
}

export const OWN_GAME = read<Packed & Pick<OwnGame, 'visibility' | 'owned'>>(
  'own_game',
  `SELECT ${GAME_ROW.sql}, g.visibility, g.user_id = $user_id AS owned FROM games g WHERE g.id = $id AND ${canEdit('g', '$user_id')}`,
);

export interface GameSales {
  currency: string;
  purchases: number;
  amount: number;
}

/** Sales of the game from the day on, if the user can edit the game. */
export const RECENT_GAME_SALES = longRead<GameSales>(
  'recent_game_sales',
  `SELECT s.currency, sum(s.purchases::float8) AS purchases, sum(s.amount::float8) AS amount
   FROM games g JOIN sales_periods s ON s.game_id = g.id AND s.unit = 'day' AND s.first_day >= $day::date
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} GROUP BY 1 ORDER BY 3 DESC, 1`,
  'user $user_id',
);

/** A seller's view of their games. */
@Injectable()
export class GamesReportService {
  constructor(private readonly database: Database) {}

  /** The games of a page, newest first, and one more if there is a next page. */
  page(user_id: number, { at, id }: Cursor = NEWEST): Promise<GameReport[]> {
    return this.database.rows(GAMES_PAGE, { user_id, at, id });
  }

  async one(id: number, user_id: number): Promise<OwnGame> {
    const row = await this.database.row(OWN_GAME, { id, user_id });
    if (!row) throw invalidGame();
    return { ...GAME_ROW.read(row), visibility: row.visibility, owned: row.owned };
  }

  /** Totals by currency, highest revenue first. */
  salesSince(day: string, game_id: number, user_id: number): Promise<GameSales[]> {
    return this.database.rows(RECENT_GAME_SALES, { user_id, game_id, day });
  }

  keysPage(user_id: number, { at, id }: Cursor = NEWEST): Promise<KeysReport[]> {
    return this.database.rows(KEYS_PAGE, { user_id, at, id });
  }
}
