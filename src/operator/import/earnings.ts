import type { TemporaryTable, TemporaryTables } from './temporary-tables';
import { addSales, subtractSales } from '../../purchases/earnings/earnings';
import { ImportProblems } from './problems';
import { given } from './record-types/fields';
import { PURCHASE } from './record-types/purchase';
import { isNew } from './record-types/record-type';

const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** Changes to the sales of games by the stream: one row per game, currency and day. */
export const SALES: TemporaryTable = {
  name: 'import_sales',
  columns: [
    { name: 'game_id', sql: 'bigint' },
    { name: 'currency', sql: 'text' },
    { name: 'day', sql: 'date' },
    { name: 'purchases', sql: 'bigint' },
    { name: 'amount', sql: 'numeric' },
  ],
};

const has = (field: string) => given(PURCHASE.fields, field);

// Shares of new and changed purchases minus stored shares. New ones are split like in the view purchase_shares, which
// works on stored rows. With OFFSET 0, PostgreSQL computes the view for these purchases only, and reads a long list of
// games once for all of them.
const CHANGES_OF_SALES = `
  WITH shares AS (
    SELECT g.game_id, s.currency, 1 AS purchases,
           (CASE WHEN t.id IS NULL THEN coalesce(s.created_at, now()) WHEN ${has('created_at')} THEN s.created_at
                 ELSE t.created_at END AT TIME ZONE 'UTC')::date AS day,
           s.amount / s.games + (g.place <= s.amount % s.games)::int AS amount
    FROM (SELECT *, cardinality(game_ids) AS games FROM import_purchases OFFSET 0) s
    LEFT JOIN (changed_purchases c JOIN purchases t ON t.id = c.id) ON c.id = s.id
    CROSS JOIN unnest(s.game_ids) WITH ORDINALITY AS g (game_id, place)
    WHERE (${isNew('purchases')} OR t.id IS NOT NULL)
      AND CASE WHEN t.id IS NULL OR ${has('status')} THEN s.status ELSE t.status END = 'complete'
    UNION ALL
    SELECT v.game_id, v.currency, -1, v.day, -v.amount
    FROM changed_purchases c
    CROSS JOIN LATERAL (SELECT * FROM purchase_shares v WHERE v.purchase_id = c.id OFFSET 0) v
  )
  SELECT game_id, currency, day, sum(purchases) AS purchases, sum(amount) AS amount
  FROM shares GROUP BY game_id, currency, day HAVING sum(purchases) <> 0 OR sum(amount) <> 0`;

/**
 * Returns the number of changes. Called before all writes: purchases count as new if they weren't stored at that time, and concurrent writes
 * may change some in between.
 */
export const findSales = (tables: TemporaryTables): Promise<number> =>
  tables.materialize(SALES, CHANGES_OF_SALES);

/** The purchases of each game `s`, so that new games are written only once. */
export const PURCHASES_OF_GAMES = `
  LEFT JOIN (SELECT game_id, sum(purchases) AS purchases FROM ${SALES.name} GROUP BY game_id) d ON d.game_id = s.id`;

/**
 * Run last, because other sales of the same games wait from here on. `newGames`: a query for games that were written
 * with their count.
 */
export async function changeSales(tables: TemporaryTables, newGames: string | undefined) {
  // A sum that a concurrent sale makes too large violates a constraint, and the import is repeated.
  const { rows } = await tables.query<{ problem: string }>(TOO_MUCH);
  if (rows.length > 0) throw new ImportProblems(rows.map(({ problem }) => problem));
  await tables.query(addSales(SALES.name, newGames && `s.game_id IN (${newGames})`));
  if (tables.rowCount(PURCHASE.changed) > 0)
    for (const statement of Object.values(subtractSales(SALES.name))) await tables.query(statement);
}

const TOO_MUCH = `
  SELECT 'line ' || (
      SELECT min(s.line) FROM import_purchases s
      WHERE d.game_id = ANY (s.game_ids) AND s.currency = d.currency) || ': game ' || d.game_id || ': earnings in ' || d.currency || ' would be more than ${MAX_AMOUNT}' AS problem
  FROM (SELECT game_id, currency, sum(amount) AS amount FROM ${SALES.name} GROUP BY game_id, currency) d
  LEFT JOIN game_earnings e USING (game_id, currency)
  WHERE coalesce(e.amount, 0) + d.amount > ${MAX_AMOUNT}
  ORDER BY d.game_id LIMIT 20`;
