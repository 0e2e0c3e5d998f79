import type { Client } from 'pg';
import type { Settings } from '../../platform/config/settings';
import { withClient } from '../../platform/database/client';
import { addToPeriods, periodsOf } from '../../purchases/earnings';

const ALL_SALES = '(SELECT game_id, currency, day, 1 AS purchases, amount FROM purchase_shares)';
const KEPT = 'SELECT game_id, unit, first_day, currency, purchases, amount FROM sales_periods';

const GAMES_THAT_DIFFER = `
  WITH sold AS (SELECT * FROM ${periodsOf(ALL_SALES)} p)
  SELECT DISTINCT game_id FROM ((TABLE sold EXCEPT ${KEPT}) UNION ALL (${KEPT} EXCEPT TABLE sold)) differs ORDER BY game_id`;

// With OFFSET 0, PostgreSQL computes the view for these purchases only. Sent as one text, these statements are one
// transaction.
const recountOf = (game_id: number) => `
  SELECT FROM games WHERE id = ${game_id} FOR NO KEY UPDATE;
  DELETE FROM sales_periods WHERE game_id = ${game_id};
  ${addToPeriods(`(
    SELECT v.game_id, v.currency, v.day, 1 AS purchases, v.amount
    FROM purchase_games pg
    CROSS JOIN LATERAL (SELECT * FROM purchase_shares WHERE purchase_id = pg.purchase_id OFFSET 0) v
    WHERE pg.game_id = ${game_id} AND v.game_id = pg.game_id)`)}`;

/**
 * Recounts the sales of games with wrong totals, and returns their number. Each game is locked separately, so sales
 * continue.
 */
export async function recountSales(
  { DATABASE_URL }: Pick<Settings, 'DATABASE_URL'>,
  signal: AbortSignal,
): Promise<number> {
  const config = { connectionString: DATABASE_URL, application_name: 'gamewharf recount' };
  const recount = async (client: Client) => {
    const { rows } = await client.query<{ game_id: number }>(GAMES_THAT_DIFFER);
    for (const { game_id } of rows) await client.query(recountOf(game_id));
    return rows.length;
  };
  return withClient(config, recount, signal);
}
