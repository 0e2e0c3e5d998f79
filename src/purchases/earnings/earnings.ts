import { addToPurchasesCount } from '../../games/games.service';

/*
 * Statements that keep the counters, earnings and sales periods of games. `sales` is a relation of changes
 * with the columns of the view purchase_shares, and `purchases`: one row for a game, a currency and a day.
 * The caller has locked the games, in the order of their IDs.
 */

export const countPurchases = (sales: string) =>
  addToPurchasesCount(`(SELECT game_id, sum(purchases) AS purchases FROM ${sales} changes GROUP BY game_id)`);

const byCurrency = (sales: string) =>
  `(SELECT game_id, currency, sum(amount) AS amount FROM ${sales} changes GROUP BY game_id, currency)`;

const addToEarnings = (rows: string) => `
  INSERT INTO game_earnings AS e (game_id, currency, amount)
  ${rows}
  ON CONFLICT (game_id, currency) DO UPDATE SET amount = e.amount + excluded.amount`;

const addToSalesPeriods = (rows: string) => `
  INSERT INTO sales_periods AS s (game_id, unit, first_day, currency, purchases, amount)
  ${rows}
  ON CONFLICT (game_id, unit, first_day, currency)
  DO UPDATE SET purchases = s.purchases + excluded.purchases, amount = s.amount + excluded.amount`;

/** Adds the amounts above 0. */
const addEarnings = (sales: string) =>
  addToEarnings(`SELECT game_id, currency, amount FROM ${byCurrency(sales)} d WHERE amount > 0`);

/** The days and months whose sales have changed. */
export const groupByPeriod = (sales: string) =>
  `(SELECT game_id, unit, date_trunc(unit, day::timestamp)::date AS first_day, currency,
           sum(purchases) AS purchases, sum(amount) AS amount
    FROM ${sales} changes, unnest('{day,month}'::text[]) AS unit
    GROUP BY 1, 2, 3, 4 HAVING sum(purchases) <> 0 OR sum(amount) <> 0)`;

const SAME_PERIOD =
  '(d.game_id, d.unit, d.first_day, d.currency) = (s.game_id, s.unit, s.first_day, s.currency)';

/**
 * Adds to periods with more purchases or a higher amount. Rows are sorted by key, because inserting many of
 * them is faster in this order.
 */
export const addToPeriods = (sales: string) =>
  addToSalesPeriods(
    `SELECT * FROM ${groupByPeriod(sales)} d WHERE purchases >= 0 AND amount >= 0 ORDER BY 1, 2, 3, 4`,
  );

/** Subtracts sales, in this order. Rows without sales are deleted. */
export const subtractSales = (sales: string) => ({
  earnings: `
    UPDATE game_earnings e SET amount = e.amount + d.amount
    FROM ${byCurrency(sales)} d WHERE d.game_id = e.game_id AND d.currency = e.currency AND d.amount < 0`,
  empty_earnings: `
    DELETE FROM game_earnings e USING ${sales} d
    WHERE d.game_id = e.game_id AND d.currency = e.currency AND e.amount = 0`,
  periods: `
    UPDATE sales_periods s SET purchases = s.purchases + d.purchases, amount = s.amount + d.amount
    FROM ${groupByPeriod(sales)} d WHERE ${SAME_PERIOD} AND (d.purchases < 0 OR d.amount < 0)`,
  empty_periods: `
    DELETE FROM sales_periods s USING ${groupByPeriod(sales)} d WHERE ${SAME_PERIOD} AND s.purchases = 0`,
});

/**
 * Adds sales to counts, earnings and periods, in this order. Locks the games first, in the order of their IDs.
 * `isCounted` is a condition on a sale `s`: whether the count of its game already includes it. The order is enforced by
 * counts that PostgreSQL computes once: joins would be nested loops over thousands of games if it expects few.
 */
export const addSales = (sales: string, isCounted = 'false') => {
  const after = (step: string, condition = 'true') =>
    `(SELECT s.* FROM sold s WHERE (SELECT count(*) FROM ${step}) >= 0 AND ${condition})`;
  return `
  WITH sold AS MATERIALIZED (SELECT * FROM ${sales} changes),
  locked AS MATERIALIZED (
    SELECT g.id FROM games g WHERE g.id IN (SELECT game_id FROM sold s WHERE NOT ${isCounted})
    ORDER BY g.id FOR NO KEY UPDATE),
  counted AS (${countPurchases(after('locked', `NOT ${isCounted}`))}),
  earned AS (${addEarnings(after('counted'))} RETURNING e.game_id)
  ${addToPeriods(after('earned'))}`;
};

/** Adds a sale of one game: a query with its columns, and `purchases` = 1. Without a row, it adds nothing. */
export const addSaleOfOneGame = (sale: string) => `
  WITH sold AS MATERIALIZED (${sale}),
  counted AS (${addToPurchasesCount('sold')}),
  earned AS (${addToEarnings('SELECT game_id, currency, amount FROM sold, counted WHERE amount > 0')})
  ${addToSalesPeriods(`SELECT game_id, unit, date_trunc(unit, created_at AT TIME ZONE 'UTC')::date, currency, purchases, amount
  FROM sold, counted, unnest('{day,month}'::text[]) AS unit`)}`;
