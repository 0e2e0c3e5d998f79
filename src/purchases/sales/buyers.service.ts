import { Injectable } from '@nestjs/common';
import { editedBy } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';

/** A person who bought games of a seller: an account, otherwise an email address. */
export interface Buyer {
  account_id: number | null;
  /** The email address of the sale below. */
  email: string;
  username: string | null;
  /** The one with the highest ID. */
  last_sale: number;
  orders: number;
  refunds: number;
  /** The prices of complete sales. */
  totals: { currency: string; amount: number }[];
  first_at: string;
  last_at: string;
  /** All buyers, on all pages. */
  buyers: number;
  /** Whether there are older sales, which aren't counted. */
  is_partial: boolean;
}

/** The newest sales of which the buyers are listed. */
export const MAX_SALES_OF_BUYERS = 20_000;
const SLICE = 5000;

const newest = (sales: string) =>
  `${sales}.sold_at DESC, ${sales}.purchase_id DESC LIMIT ${MAX_SALES_OF_BUYERS}`;

// The index of user_emails has the default collation: another would scan the table for each address.
/**
 * The buyers of the games that $1 can edit, or only of the game $2; those who bought last first. Only the purchases of
 * the people on the page are read. Their IDs are collected as text, because array_agg() rejects arrays of different
 * lengths.
 */
export const BUYERS = longRead<Buyer>(
  'seller_buyers',
  `WITH sales AS MATERIALIZED (
     SELECT DISTINCT s.sold_at, s.purchase_id, s.user_id, s.email COLLATE "C" AS email
     FROM (SELECT own.id FROM (${editedBy('$1')}) own WHERE $2::bigint IS NULL OR own.id = $2) g
     CROSS JOIN LATERAL (
       SELECT sold_at, purchase_id, user_id, email FROM purchase_games pg WHERE game_id = g.id AND sold_at IS NOT NULL
       ORDER BY ${newest('pg')}) s
     ORDER BY ${newest('s')}),
   of_addresses AS MATERIALIZED (
     SELECT user_id, email, string_agg(purchase_id::text, ',') AS sales,
       min(sold_at) AS first_at, max(sold_at) AS last_at, max(purchase_id) AS last_sale
     FROM sales WHERE email <> '${ERASED_ADDRESS}' GROUP BY 1, 2),
   people AS MATERIALIZED (
     SELECT p.account_id, string_agg(a.sales, ',') AS sales, min(a.first_at) AS first_at, max(a.last_at) AS last_at,
       max(a.last_sale) AS last_sale, count(*) OVER () AS buyers
     FROM of_addresses a CROSS JOIN LATERAL (
       SELECT coalesce(a.user_id, (SELECT user_id FROM user_emails WHERE email = a.email COLLATE "default" AND verified)) AS account_id OFFSET 0) p
     GROUP BY p.account_id, CASE WHEN p.account_id IS NULL THEN a.email END
     ORDER BY max(a.last_at) DESC, max(a.last_sale) DESC LIMIT $3 OFFSET $4)
   SELECT b.account_id, b.first_at, b.last_at, b.last_sale, b.buyers, spent.*, p.email,
     (SELECT username FROM users WHERE id = b.account_id) AS username,
     (SELECT count(*) FROM sales) >= ${MAX_SALES_OF_BUYERS} AS is_partial
   FROM people b JOIN purchases p ON p.id = b.last_sale
   CROSS JOIN LATERAL (
     SELECT sum(orders)::bigint AS orders, sum(refunds)::bigint AS refunds,
       json_agg(json_build_object('currency', c.currency, 'amount', c.amount) ORDER BY c.amount DESC, c.currency) AS totals
     FROM (
       SELECT p.currency, count(*) AS orders, count(*) FILTER (WHERE p.status = 'refunded') AS refunds,
         coalesce(sum(p.amount) FILTER (WHERE p.status = 'complete'), 0)::float8 AS amount
       FROM unnest(string_to_array(b.sales, ',')::bigint[]) AS s (id)
       CROSS JOIN LATERAL (SELECT status, currency, amount FROM purchases WHERE id = s.id OFFSET 0) p GROUP BY 1) c) spent
   ORDER BY b.last_at DESC, b.last_sale DESC`,
  'user $1',
);

/** The people who bought a seller's games. */
@Injectable()
export class BuyersService {
  constructor(private readonly database: Database) {}

  page(seller_id: number, game_id: number | undefined, limit: number, offset: number): Promise<Buyer[]> {
    return this.database.rows(BUYERS, [seller_id, game_id ?? null, limit, offset]);
  }

  async *all(seller_id: number, game_id: number | undefined): AsyncGenerator<Buyer[]> {
    for (let offset = 0; ; offset += SLICE) {
      const rows = await this.page(seller_id, game_id, SLICE, offset);
      yield rows;
      if (rows.length < SLICE) return;
    }
  }
}
