import type { TemporaryTable, TemporaryTables } from './temporary-tables';
import { addSales, subtractSales } from '../../purchases/earnings/earnings';
import { ImportProblems } from './problems';
import { hasField } from './record-types/fields';
import { PURCHASE_RECORD, storedGames } from './record-types/purchase';
import { isNew } from './record-types/record-type';

const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** Changes to the sales of games by the stream: one row per game, currency and day. */
export const IMPORTED_SALES: TemporaryTable = {
  name: 'import_sales',
  columns: [
    { name: 'game_id', sql: 'bigint' },
    { name: 'currency', sql: 'text' },
    { name: 'day', sql: 'date' },
    { name: 'purchases', sql: 'bigint' },
    { name: 'amount', sql: 'numeric' },
  ],
};

const has = (field: string) => hasField(PURCHASE_RECORD.fields, field);

// Shares of new and changed purchases minus stored shares, split as in the view purchase_shares: a game gets
// one more minor unit if its place is not above the remainder. Purchases of several games are grouped by
// their lists first, because thousands of purchases may have the same thousands of games.
const CHANGES_OF_SALES = `
  WITH sold AS (
    SELECT s.game_ids, cardinality(s.game_ids) AS games, s.currency, 1 AS purchases, s.amount,
           (CASE WHEN t.id IS NULL THEN coalesce(s.created_at, now()) WHEN ${has('created_at')} THEN s.created_at
                 ELSE t.created_at END AT TIME ZONE 'UTC')::date AS day
    FROM import_purchases s
    LEFT JOIN (changed_purchases c JOIN purchases t ON t.id = c.id) ON c.id = s.id
    WHERE (${isNew('purchases')} OR t.id IS NOT NULL)
      AND CASE WHEN t.id IS NULL OR ${has('status')} THEN s.status ELSE t.status END = 'complete'
    UNION ALL
    SELECT stored.game_ids, cardinality(stored.game_ids), t.currency, -1, t.amount, (t.created_at AT TIME ZONE 'UTC')::date
    FROM changed_purchases c
    JOIN purchases t ON t.id = c.id
    CROSS JOIN LATERAL (SELECT ${storedGames('t')} AS game_ids OFFSET 0) stored
    WHERE t.status = 'complete'
  ), lists AS MATERIALIZED (
    SELECT row_number() OVER () AS list, game_ids, currency, day, sum(purchases) AS purchases,
           sum(purchases * (amount / games)) AS amount,
           array_agg(amount % games) AS remainders, array_agg(purchases) AS signs
    FROM sold WHERE games > 1 GROUP BY game_ids, currency, day
  ), remainders AS (
    SELECT l.list, r.place, sum(r.sign) AS amount
    FROM lists l CROSS JOIN unnest(l.remainders, l.signs) AS r (place, sign) GROUP BY l.list, r.place
  ), shares AS (
    SELECT game_ids[1] AS game_id, currency, day, purchases, purchases * amount AS amount FROM sold WHERE games = 1
    UNION ALL
    SELECT g.id, l.currency, l.day, l.purchases,
           l.amount + coalesce(sum(r.amount) OVER (PARTITION BY l.list ORDER BY g.place DESC), 0)
    FROM lists l
    CROSS JOIN unnest(l.game_ids) WITH ORDINALITY AS g (id, place)
    LEFT JOIN remainders r ON r.list = l.list AND r.place = g.place
  )
  SELECT game_id, currency, day, sum(purchases)::bigint AS purchases, sum(amount) AS amount
  FROM shares GROUP BY game_id, currency, day HAVING sum(purchases) <> 0 OR sum(amount) <> 0`;

/**
 * Returns the number of changes. Must run before all writes, because purchases count as new if they aren't
 * stored at this time, and concurrent writes may change some later.
 */
export const findSales = (tables: TemporaryTables): Promise<number> =>
  tables.materialize(IMPORTED_SALES, CHANGES_OF_SALES);

/** The purchases of each game `s`, so that new games are written with their final count. */
export const PURCHASES_OF_GAMES = `
  LEFT JOIN (SELECT game_id, sum(purchases) AS purchases FROM ${IMPORTED_SALES.name} GROUP BY game_id) d ON d.game_id = s.id`;

/**
 * Must run last, because it locks the games: other sales of these games wait until the import ends.
 * `newGames`: a query for games that were written with their count.
 */
export async function changeSales(tables: TemporaryTables, newGames: string | undefined) {
  // A sum that a concurrent sale makes too large violates a constraint, and the import is repeated.
  const { rows } = await tables.query<{ problem: string }>(TOO_MUCH);
  if (rows.length > 0) throw new ImportProblems(rows.map(({ problem }) => problem));
  await tables.query(addSales(IMPORTED_SALES.name, newGames && `s.game_id IN (${newGames})`));
  if (tables.rowCount(PURCHASE_RECORD.changed) > 0)
    for (const statement of Object.values(subtractSales(IMPORTED_SALES.name))) await tables.query(statement);
}

const TOO_MUCH = `
  SELECT 'line ' || (
      SELECT min(s.line) FROM import_purchases s
      WHERE d.game_id = ANY (s.game_ids) AND s.currency = d.currency) || ': game ' || d.game_id || ': earnings in ' || d.currency || ' would be more than ${MAX_AMOUNT}' AS problem
  FROM (SELECT game_id, currency, sum(amount) AS amount FROM ${IMPORTED_SALES.name} GROUP BY game_id, currency) d
  LEFT JOIN game_earnings e USING (game_id, currency)
  WHERE coalesce(e.amount, 0) + d.amount > ${MAX_AMOUNT}
  ORDER BY d.game_id LIMIT 20`;
