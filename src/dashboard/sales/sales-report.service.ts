import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { longRead, read } from '../../platform/database/statement';
import { canEdit } from '../../games/visibility';
import type { Period } from './period';

interface Sold {
  purchases: number;
  amount: number;
}

interface CurrencySold extends Sold {
  currency: string;
}

export interface GameSold extends Sold {
  id: number;
  title: string;
  /** Live keys that came with purchases in the period, at most MAX_KEYS, and those of them that somebody claimed. */
  keys: number;
  claimed: number;
}

export interface Figures {
  /** Most sold first. */
  totals: CurrencySold[];
  /** Of one of them, the chosen one where it is there: by the first day of a column. */
  currency: string | undefined;
  columns: Map<string, Sold>;
}

export const GAMES_ON_A_PAGE = 25;
export const MAX_KEYS = 1000;
const MAX_CURRENCIES = 30;

/** The games that $1 can edit, or of them only $2. */
const GAMES = `(
  SELECT g.id FROM (SELECT id FROM games WHERE user_id = $1
                    UNION SELECT game_id FROM game_admins WHERE user_id = $1) g
  WHERE $2::bigint IS NULL OR g.id = $2) g`;

/** $3 to $4, read from days or from months, as the unit says. OFFSET 0: else the periods of all games may be read, docs/contributing/decisions/single-probe-lookups.md. */
const periodsOf = (game: string, unit: string, columns: string, condition = 'true') =>
  `(SELECT ${columns} FROM sales_periods
    WHERE game_id = ${game}.id AND unit = ${unit} AND first_day BETWEEN $3 AND $4 AND ${condition} OFFSET 0)`;

// As float8, whose sums are exact up to 2^53 and take half the time of those of bigint.
export const TOTALS = longRead<CurrencySold>(
  'sales_totals',
  `SELECT s.currency, sum(s.purchases::float8) AS purchases, sum(s.amount::float8) AS amount
   FROM ${GAMES} CROSS JOIN LATERAL ${periodsOf('g', '$5', 'currency, purchases, amount')} s
   GROUP BY s.currency ORDER BY 2 DESC, s.currency LIMIT ${MAX_CURRENCIES}`,
);

export const COLUMNS = longRead<Sold & { first: string }>(
  'sales_columns',
  `SELECT date_trunc($7, first_day::timestamp)::date::text AS first, sum(purchases) AS purchases, sum(amount) AS amount
   FROM (SELECT s.first_day, sum(s.purchases::float8) AS purchases, sum(s.amount::float8) AS amount
         FROM ${GAMES} CROSS JOIN LATERAL ${periodsOf('g', '$6', 'first_day, purchases, amount', 'currency = $5')} s
         GROUP BY s.first_day) sold
   GROUP BY 1`,
);

export const RANKED_GAMES = longRead<GameSold>(
  'sales_ranked_games',
  `SELECT g.id, g.title, coalesce(ranked.purchases, 0) AS purchases, coalesce(ranked.amount, 0) AS amount, k.keys, k.claimed
   FROM (SELECT g.id, s.purchases, s.amount FROM ${GAMES}
         LEFT JOIN LATERAL (SELECT sum(purchases) AS purchases, sum(amount) AS amount
                            FROM ${periodsOf('g', '$6', 'purchases, amount', 'currency = $5')} d) s ON true
         ORDER BY s.amount DESC NULLS LAST, s.purchases DESC NULLS LAST, g.id DESC
         LIMIT ${GAMES_ON_A_PAGE + 1} OFFSET $7) ranked
   JOIN games g ON g.id = ranked.id
   CROSS JOIN LATERAL (
     SELECT count(*) AS keys, count(user_id) AS claimed FROM (
       SELECT user_id FROM download_keys
       WHERE game_id = g.id AND purchase_id IS NOT NULL AND revoked_at IS NULL
         AND created_at >= $3::date::timestamp AT TIME ZONE 'UTC' AND created_at < ($4::date + 1)::timestamp AT TIME ZONE 'UTC'
       ORDER BY created_at DESC LIMIT ${MAX_KEYS}) newest) k
   ORDER BY ranked.amount DESC NULLS LAST, ranked.purchases DESC NULLS LAST, g.id DESC`,
);

const TITLE = read<{ title: string }>(
  'title_of_own_game',
  `SELECT title FROM games g WHERE g.id = $1 AND ${canEdit('g', '$2')}`,
);

/** What was sold of the games that a user can edit: from the figures of days and months. */
@Injectable()
export class SalesReportService {
  constructor(private readonly database: Database) {}

  /** Undefined: the user cannot edit such a game. */
  async titleOf(game_id: number, editor_id: number): Promise<string | undefined> {
    return (await this.database.row(TITLE, [game_id, editor_id]))?.title;
  }

  async figures(
    user_id: number,
    { from, to, unit, summed }: Period,
    { game_id, currency }: { game_id: number | null; currency?: string },
  ): Promise<Figures> {
    const totals = await this.database.rows(TOTALS, [user_id, game_id, from, to, summed]);
    const chosen = (totals.find((one) => one.currency === currency) ?? totals[0])?.currency;
    const read = unit === 'month' ? 'month' : 'day';
    const rows = chosen
      ? await this.database.rows(COLUMNS, [user_id, game_id, from, to, chosen, read, unit])
      : [];
    return { totals, currency: chosen, columns: new Map(rows.map(({ first, ...sold }) => [first, sold])) };
  }

  /** The games, those that earned most in the currency first; one more than fits on the page, where there is a next page. */
  rankedGames(
    user_id: number,
    { from, to, summed }: Period,
    { game_id, currency, page }: { game_id: number | null; currency?: string; page: number },
  ): Promise<GameSold[]> {
    const offset = (page - 1) * GAMES_ON_A_PAGE;
    return this.database.rows(RANKED_GAMES, [user_id, game_id, from, to, currency ?? null, summed, offset]);
  }
}
