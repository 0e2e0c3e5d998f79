import { editedBy } from '../../games/visibility';
import { longRead } from '../../platform/database/statement';

export interface Sold {
  purchases: number;
  amount: number;
}

/** Totals of the newest sales of a game in one currency and from one source. */
export interface RecentSales extends Sold {
  /** Whether these sales are in the period; otherwise they are in the previous one. */
  current: boolean;
  currency: string;
  game_id: number;
  source: string;
  /** The number of sales including refunded ones, which `purchases` and `amount` exclude. */
  sales: number;
  /** Live keys of the sales, and those of them that are claimed. */
  keys: number;
  claimed: number;
}

/** The figures of one period, for its newest sales. */
export interface Recent {
  refunds: number;
  keys: number;
  claimed: number;
  /** Whether there are older sales, which are not counted. */
  isSample: boolean;
}

/** Sales of a period that are read individually. Revenue and sales are summed from all. */
export const MAX_RECENT = 2000;

/** The games that the user can edit, or only the one with `$game_id`. */
export const REPORTED_GAMES = `(
  SELECT g.id FROM (${editedBy('$user_id')}) g
  WHERE $game_id::bigint IS NULL OR g.id = $game_id) g`;

const dayStart = (day: string) => `${day}::timestamp AT TIME ZONE 'UTC'`;

// Only a bundle is split among games.
export const RECENT_SALES = longRead<RecentSales>(
  'recent_sales',
  `SELECT s.current, p.currency, s.game_id, p.source, count(*) AS sales,
     count(*) FILTER (WHERE p.status = 'complete') AS purchases,
     coalesce(sum(CASE WHEN p.status <> 'complete' THEN 0 WHEN p.purchase_type <> 'bundle' THEN p.amount::float8 ELSE (
       SELECT share.amount FROM (SELECT * FROM purchase_shares WHERE purchase_id = p.id OFFSET 0) share
       WHERE share.game_id = s.game_id) END), 0) AS amount,
     sum(k.keys)::float8 AS keys, sum(k.claimed)::float8 AS claimed
   FROM (VALUES (true, $from::date, $to::date), (false, $previous_from::date, $previous_to::date)) period (current, first, last)
   CROSS JOIN LATERAL (
     SELECT period.current, newest.* FROM ${REPORTED_GAMES} CROSS JOIN LATERAL (
       SELECT purchase_id, game_id, sold_at FROM purchase_games
       WHERE game_id = g.id AND sold_at >= ${dayStart('period.first')} AND sold_at < ${dayStart('(period.last + 1)')}
       ORDER BY sold_at DESC, purchase_id DESC LIMIT ${MAX_RECENT}) newest
     ORDER BY sold_at DESC, purchase_id DESC LIMIT ${MAX_RECENT}) s
   JOIN purchases p ON p.id = s.purchase_id
   CROSS JOIN LATERAL (
     SELECT count(*) AS keys, count(user_id) AS claimed FROM download_keys
     WHERE purchase_id = s.purchase_id AND game_id = s.game_id AND revoked_at IS NULL) k
   GROUP BY 1, 2, 3, 4`,
  'user $user_id',
);

export const splitByPeriod = (rows: RecentSales[]) =>
  [rows.filter(({ current }) => current), rows.filter(({ current }) => !current)] as const;

/** `all` are the sales of the period in every currency. */
export function mergeRecent(own: RecentSales[], all: RecentSales[]): Recent {
  const recent: Recent = { refunds: 0, keys: 0, claimed: 0, isSample: false };
  for (const one of own) {
    recent.refunds += one.sales - one.purchases;
    recent.keys += one.keys;
    recent.claimed += one.claimed;
  }
  const read = all.reduce((count, row) => count + row.sales, 0);
  return { ...recent, isSample: read >= MAX_RECENT };
}

export function summedBy<Name extends 'source' | 'game_id'>(rows: RecentSales[], name: Name): RecentSales[] {
  const sums = new Map<RecentSales[Name], RecentSales>();
  for (const row of rows) {
    const sum = sums.get(row[name]);
    if (sum === undefined) sums.set(row[name], { ...row });
    else for (const field of ['purchases', 'amount', 'keys', 'claimed'] as const) sum[field] += row[field];
  }
  return [...sums.values()];
}
