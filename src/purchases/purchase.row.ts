import { prefixColumns } from '../platform/database/statement';
import type { Purchase } from './purchase.entity';

const PURCHASE_COLUMNS = [
  'id',
  'donation',
  'email',
  'created_at',
  'source',
  'currency',
  'amount',
  'sale_rate',
  'quantity',
  'purchase_type',
] as const satisfies (keyof Purchase)[];

export interface PurchaseRow extends Pick<Purchase, (typeof PURCHASE_COLUMNS)[number]> {
  status: 'complete';
  /** All games of a bundle; null for other purchases. */
  game_ids: number[] | null;
}

/** The columns of a purchase `p`. */
export const PURCHASE_ROW = `${prefixColumns('p', PURCHASE_COLUMNS)}, p.status,
  CASE p.purchase_type WHEN 'bundle' THEN
    ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) END AS game_ids`;

/**
 * The ID of the account that bought a purchase `p`, or that verified its email address. The index of user_emails has the
 * default collation. With another collation, PostgreSQL would scan the table for each email address.
 */
export const BUYER_ACCOUNT_ID = `coalesce(p.user_id, (SELECT user_id FROM user_emails WHERE email = lower_ascii(p.email) AND verified))`;
