import type { ClientBase } from 'pg';
import { addEarnings, countPurchases, dropEmptyEarnings, takeEarnings } from '../purchases/earnings';
import { ImportProblems } from './problems';
import { bitOf, type RecordType } from './record-types';

const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** Computes the changes of each game's sales: shares of new and changed purchases less stored shares. Run before all writes. */
export async function findSales(client: ClientBase, purchase: RecordType) {
  // Splits new shares as the function purchase_shares does, which works on stored rows.
  await client.query(`
    CREATE TEMP TABLE import_sales ON COMMIT DROP AS
    WITH shares AS (
      SELECT g.game_id, s.currency, 1 AS purchases,
             s.amount / cardinality(s.game_ids) + (g.place <= s.amount % cardinality(s.game_ids))::int AS amount
      FROM import_purchases s
      LEFT JOIN purchases t ON t.id = s.id
      CROSS JOIN unnest(s.game_ids) WITH ORDINALITY AS g (game_id, place)
      WHERE (t.id IS NULL OR t.id IN (SELECT id FROM changed_purchases))
        AND CASE WHEN t.id IS NULL OR s.present & ${bitOf(purchase, 'status')} <> 0
                 THEN s.status ELSE t.status END = 'complete'
      UNION ALL
      SELECT v.game_id, v.currency, -1, -v.amount
      FROM changed_purchases c
      -- OFFSET 0 has the view computed for these purchases alone, and not for all that are stored.
      CROSS JOIN LATERAL (SELECT * FROM purchase_shares v WHERE v.purchase_id = c.id OFFSET 0) v
    )
    SELECT game_id, currency, sum(purchases) AS purchases, sum(amount) AS amount
    FROM shares GROUP BY game_id, currency`);
  await client.query('ANALYZE import_sales');

  const { rows } = await client.query<{ problem: string }>(`
    SELECT 'game ' || d.game_id || ': earnings in ' || d.currency || ' would be more than ${MAX_AMOUNT}' AS problem
    FROM import_sales d LEFT JOIN game_earnings e USING (game_id, currency)
    WHERE coalesce(e.amount, 0) + d.amount > ${MAX_AMOUNT}
    ORDER BY d.game_id LIMIT 20`);
  if (rows.length) throw new ImportProblems(rows.map(({ problem }) => problem));
}

/** The purchases of each game `s`, so that new games are written only once. */
export const SALES_OF_GAMES = `
  LEFT JOIN (SELECT game_id, sum(purchases) AS purchases FROM import_sales GROUP BY game_id) d ON d.game_id = s.id`;

/** Adds the purchases to the stored games. Run before new ones are written. */
export async function countSales(client: ClientBase) {
  await client.query(countPurchases('import_sales'));
}

/** Adds the amounts. Run when all games are written. */
export async function writeEarnings(client: ClientBase) {
  for (const statement of [takeEarnings, dropEmptyEarnings, addEarnings])
    await client.query(statement('import_sales'));
}
