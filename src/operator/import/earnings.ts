import type { Relation, Relations } from '../../platform/database/relations';
import { addSales, subtractSales } from '../../purchases/earnings/earnings';
import { SENDER_BITS } from './checks';
import { ImportProblems } from './problems';
import { given } from './record-types/fields';
import { PURCHASE } from './record-types/purchase';
import { isNew } from './record-types/record-type';

const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** Changes to the sales of games by the stream: one row per game, currency and day. */
const SALES: Relation = {
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
// works on stored rows. With OFFSET 0, PostgreSQL computes the view for these purchases only.
const CHANGES_OF_SALES = `
  WITH shares AS (
    SELECT g.game_id, s.currency, 1 AS purchases,
           (CASE WHEN t.id IS NULL THEN coalesce(s.created_at, now()) WHEN ${has('created_at')} THEN s.created_at
                 ELSE t.created_at END AT TIME ZONE 'UTC')::date AS day,
           s.amount / cardinality(s.game_ids) + (g.place <= s.amount % cardinality(s.game_ids))::int AS amount
    FROM import_purchases s
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

/** Where statements read the changes to sales from. */
export type Sales = Awaited<ReturnType<typeof findSales>>;

/** Before all writes. Purchases count as new if they weren't stored at that time: concurrent writes may change some in between. */
export const findSales = async (relations: Relations) =>
  // Sales of new purchases depend only on the records, so a small import needs no query for them.
  relations.rowsOf(PURCHASE.changed) === 0
    ? relations.derive(SALES, CHANGES_OF_SALES)
    : { from: SALES.name, rows: await relations.keep(SALES, CHANGES_OF_SALES) };

/** The purchases of each game `s`, so that new games are written only once. */
export const salesOfGames = ({ from }: Sales) => `
  LEFT JOIN (SELECT game_id, sum(purchases) AS purchases FROM ${from} changes GROUP BY game_id) d ON d.game_id = s.id`;

/**
 * Run last, because other sales of the same games wait from here on. `newGames`: a query for games that were written
 * with their count.
 */
export async function changeSales(relations: Relations, { from, rows }: Sales, newGames: string | undefined) {
  if (rows === 0) return;
  // A sum that a concurrent sale makes too large violates a constraint, and the import is repeated.
  const statements = [
    `SELECT problem FROM ${tooMuch(from)}`,
    addSales(from, newGames && `s.game_id IN (${newGames})`),
    ...(relations.rowsOf(PURCHASE.changed) > 0 ? Object.values(subtractSales(from)) : []),
  ];
  const send = (statement: string) => relations.query<{ problem: string }>(statement);
  // Only a few, so they are sent without waiting for responses; each still sees what was committed while the first one
  // waited for its locks.
  const sent = relations.isSmall ? statements.map(send) : [];
  for (const response of sent) response.catch(() => {});
  for (const [i, statement] of statements.entries()) {
    const { rows } = await (sent[i] ?? send(statement));
    if (rows.length) throw new ImportProblems(rows.map(({ problem }) => problem));
  }
}

const tooMuch = (sales: string) => `(
  SELECT 'line ' || (
      SELECT min(s.line) % ${2 ** SENDER_BITS} FROM import_purchases s
      WHERE d.game_id = ANY (s.game_ids) AND s.currency = d.currency) || ': game ' || d.game_id || ': earnings in ' || d.currency || ' would be more than ${MAX_AMOUNT}' AS problem
  FROM (SELECT game_id, currency, sum(amount) AS amount FROM ${sales} changes GROUP BY game_id, currency) d
  LEFT JOIN game_earnings e USING (game_id, currency)
  WHERE coalesce(e.amount, 0) + d.amount > ${MAX_AMOUNT}
  ORDER BY d.game_id LIMIT 20) too_much`;
