import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { canEdit } from '../../games/visibility';
import { type Dates, daysIn } from '../../platform/formats/days';
import {
  mergeRecent,
  RECENT_SALES,
  type Recent,
  type RecentSales,
  REPORTED_GAMES,
  type Sold,
  splitByPeriod,
  summedBy,
} from './recent-sales';

export type Unit = 'day' | 'week' | 'month';

export interface ReportPeriod extends Dates {
  /** The unit of the columns. */
  unit: Unit;
  /** The unit of the totals that are summed: a few monthly ones for whole months, instead of many daily ones. */
  summed: 'day' | 'month';
  /** The period before this one, with as many days. */
  previous?: Dates;
}

export interface CurrencySold extends Sold {
  currency: string;
}

/** The sales in one currency. */
export interface Totals extends CurrencySold {
  previous_purchases: number;
  previous_amount: number;
}

export interface GameSold extends Sold {
  id: number;
  title: string;
}

export interface Report {
  totals: Totals[];
  /** One of the currencies: the requested one if something was sold in it. All other values are in this currency. */
  chosen: Totals | undefined;
  /** Figures by the first day of a column. */
  columns: Map<string, Sold>;
  /** The revenue of the previous period, by the columns of the current one. */
  before: Map<string, number>;
  /** The requested number of games, highest revenue first, including games without sales. */
  games: GameSold[];
  current: Recent;
  previous: Recent;
  /** Totals of the newest sales, highest revenue first. */
  sources: (Sold & { source: string })[];
  /** Totals of the newest sales, by game. */
  keys: Map<number, Pick<Recent, 'keys' | 'claimed'>>;
}

export interface Filter {
  game_id: number | null;
  currency?: string;
}

const MAX_CURRENCIES = 30;

/**
 * Totals of the period, by day or month depending on the unit. Without OFFSET 0, PostgreSQL may read the
 * totals of all games (see docs/contributing/decisions/performance.md).
 */
const selectPeriods = (game: string, unit: string, columns: string, condition = 'true') =>
  `(SELECT ${columns} FROM sales_periods
    WHERE game_id = ${game}.id AND unit = ${unit} AND first_day BETWEEN $from AND $to AND ${condition} OFFSET 0)`;

const PREVIOUS_DAYS = `(
  SELECT first_day, currency, purchases, amount FROM sales_periods
  WHERE game_id = g.id AND unit = 'day' AND first_day BETWEEN $previous_from AND $previous_to OFFSET 0)`;

// Sums are float8, which is exact up to 2^53 and faster than bigint.
export const TOTALS = longRead<CurrencySold>(
  'sales_totals',
  `SELECT s.currency, sum(s.purchases::float8) AS purchases, sum(s.amount::float8) AS amount
   FROM ${REPORTED_GAMES} CROSS JOIN LATERAL ${selectPeriods('g', '$summed', 'currency, purchases, amount')} s
   GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${MAX_CURRENCIES}`,
  'user $user_id',
);

interface FiguresRow {
  totals: Totals[] | null;
  currency: string | null;
  columns: (Sold & { first: string })[] | null;
  before: { first: string; amount: number }[] | null;
  games: GameSold[] | null;
}

const selectColumns = (days: string, first_day: string) =>
  `SELECT date_trunc($unit, (${first_day})::timestamp)::date AS first, sum(purchases) AS purchases, sum(amount) AS amount
   FROM (SELECT first_day, sum(purchases::float8) AS purchases, sum(amount::float8) AS amount
         FROM ${days} d GROUP BY 1) d GROUP BY 1`;

const IN_CHOSEN = 'currency = (SELECT currency FROM chosen)';

/**
 * All figures from the daily and monthly totals, which are read once for each game: by `$summed`, and by
 * `$summed_for_columns` if the columns need shorter units. The previous period is read by day and moved by
 * `$days`, so that it has the columns of this one. Games are united with their sales and not joined, because
 * plans for few games would join many of them in a loop.
 */
export const SALES_FIGURES = longRead<FiguresRow>(
  'sales_figures',
  `WITH own AS MATERIALIZED (SELECT g.id FROM ${REPORTED_GAMES}),
   sold AS MATERIALIZED (
     SELECT g.id AS game_id, s.*
     FROM own g CROSS JOIN LATERAL ${selectPeriods('g', '$summed', 'first_day, currency, purchases, amount')} s),
   sold_before AS MATERIALIZED (SELECT s.* FROM own g CROSS JOIN LATERAL ${PREVIOUS_DAYS} s),
   totals AS MATERIALIZED (
     SELECT currency, sum(purchases) AS purchases, sum(amount) AS amount,
       sum(previous_purchases) AS previous_purchases, sum(previous_amount) AS previous_amount
     FROM (
       SELECT currency, sum(purchases::float8) AS purchases, sum(amount::float8) AS amount,
         0::float8 AS previous_purchases, 0::float8 AS previous_amount
       FROM sold GROUP BY 1
       UNION ALL
       SELECT currency, 0, 0, sum(purchases::float8), sum(amount::float8) FROM sold_before GROUP BY 1) both_periods
     GROUP BY currency ORDER BY 2 DESC, 4 DESC, currency LIMIT ${MAX_CURRENCIES}),
   chosen AS MATERIALIZED (
     SELECT currency FROM totals
     ORDER BY currency IS NOT DISTINCT FROM $currency DESC, purchases DESC, previous_purchases DESC, currency LIMIT 1)
   SELECT (SELECT json_agg(t) FROM totals t) AS totals, (SELECT currency FROM chosen) AS currency,
     (SELECT json_agg(c) FROM (${selectColumns(
       `(SELECT first_day, purchases, amount FROM sold WHERE $summed_for_columns = $summed AND ${IN_CHOSEN}
         UNION ALL SELECT s.first_day, s.purchases, s.amount
         FROM own g CROSS JOIN LATERAL ${selectPeriods('g', '$summed_for_columns', 'first_day, purchases, amount', IN_CHOSEN)} s
         WHERE $summed_for_columns <> $summed)`,
       'first_day',
     )}) c) AS columns,
     (SELECT json_agg(b) FROM (${selectColumns(
       `(SELECT first_day, purchases, amount FROM sold_before WHERE ${IN_CHOSEN})`,
       'first_day + $days::int',
     )}) b) AS before,
     (SELECT json_agg(json_build_object('id', g.id, 'title', g.title,
        'purchases', coalesce(r.purchases, 0), 'amount', coalesce(r.amount, 0)) ORDER BY r.place)
      FROM (SELECT ranked.*, row_number() OVER () AS place FROM (
              SELECT id, sum(purchases) AS purchases, sum(amount) AS amount
              FROM (SELECT id, NULL::float8 AS purchases, NULL::float8 AS amount FROM own
                    UNION ALL SELECT game_id, purchases, amount FROM sold WHERE ${IN_CHOSEN}) games_and_sales
              GROUP BY id ORDER BY 3 DESC NULLS LAST, 2 DESC NULLS LAST, id DESC LIMIT $limit OFFSET $offset) ranked) r
      JOIN games g ON g.id = r.id) AS games`,
  'user $user_id',
);

/** Sales of a game from a day on, if the user can edit the game. */
const RECENT_GAME_SALES = longRead<CurrencySold>(
  'recent_game_sales',
  `SELECT s.currency, sum(s.purchases::float8) AS purchases, sum(s.amount::float8) AS amount
   FROM games g JOIN sales_periods s ON s.game_id = g.id AND s.unit = 'day' AND s.first_day >= $day::date
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} GROUP BY 1 ORDER BY 3 DESC, 1`,
  'user $user_id',
);

/** The sales of the games that a user can edit: from daily and monthly totals, and from the newest sales. */
@Injectable()
export class SalesReportService {
  constructor(private readonly database: Database) {}

  /** The currencies in which something was sold, most sales first. */
  totals(
    user_id: number,
    { from, to, summed }: Pick<ReportPeriod, 'from' | 'to' | 'summed'>,
    game_id: number | null,
  ): Promise<CurrencySold[]> {
    return this.database.rows(TOTALS, { user_id, game_id, from, to, summed });
  }

  /** Totals by currency, highest revenue first. */
  salesSince(day: string, game_id: number, user_id: number): Promise<CurrencySold[]> {
    return this.database.rows(RECENT_GAME_SALES, { user_id, game_id, day });
  }

  /** `games` is the number of games to return, highest revenue first. */
  async report(
    user_id: number,
    period: ReportPeriod,
    { game_id, currency }: Filter,
    games: { limit: number; offset?: number } = { limit: 0 },
  ): Promise<Report> {
    const { unit, summed } = period;
    const [figures, recent] = await Promise.all([
      this.database.row(SALES_FIGURES, {
        user_id,
        game_id,
        ...periodValues(period),
        summed,
        unit,
        summed_for_columns: unit === 'month' ? summed : 'day',
        currency: currency ?? null,
        days: daysIn(period),
        limit: games.limit,
        offset: games.offset ?? 0,
      }),
      this.recentSales(user_id, period, game_id),
    ]);
    const totals = figures!.totals ?? [];
    const chosen = totals.find((one) => one.currency === figures!.currency);
    const own = recent.filter((one) => one.currency === chosen?.currency);
    const [current, previous] = splitByPeriod(own);
    const [allCurrent, allPrevious] = splitByPeriod(recent);
    return {
      totals,
      chosen,
      columns: new Map((figures!.columns ?? []).map(({ first, ...sold }) => [first, sold])),
      before: new Map((figures!.before ?? []).map(({ first, amount }) => [first, amount])),
      games: figures!.games ?? [],
      current: mergeRecent(current, allCurrent),
      previous: mergeRecent(previous, allPrevious),
      sources: summedBy(current, 'source').toSorted((a, b) => b.amount - a.amount),
      keys: new Map(summedBy(current, 'game_id').map((one) => [one.game_id, one])),
    };
  }

  private recentSales(user_id: number, period: ReportPeriod, game_id: number | null): Promise<RecentSales[]> {
    return this.database.rows(RECENT_SALES, { user_id, game_id, ...periodValues(period) });
  }
}

const periodValues = ({ from, to, previous }: ReportPeriod) => ({
  from,
  to,
  previous_from: previous?.from ?? null,
  previous_to: previous?.to ?? null,
});
