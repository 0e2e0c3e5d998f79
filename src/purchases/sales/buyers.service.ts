import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import {
  type Direction,
  FILTERED_GAMES_READ,
  GAMES_READ,
  nextSales,
  ORDERS,
  type Place,
  FIRST_PLACE,
} from './sales-list.service';
import { BUYER_ACCOUNT_ID } from '../purchase.row';

/** A person who bought games of a seller: an account, otherwise an email address. */
export interface Buyer {
  account_id: number | null;
  /** The email address of `last_sale`. */
  email: string;
  username: string | null;
  /** The ID of the newest sale. */
  last_sale: number;
  orders: number;
  refunds: number;
  /** The prices of complete sales. */
  totals: { currency: string; amount: number }[];
  first_at: string;
  last_at: string;
}

export interface Buyers {
  /** Buyers in the order in which they were read. */
  buyers: Buyer[];
  /** Where a later read continues; undefined: there are no more buyers. */
  next: Place | undefined;
  /** Whether some sales of these buyers aren't counted. */
  isPartial: boolean;
}

type Row = (Buyer | { last_sale: null }) & {
  is_partial: boolean;
  ends_at: string | null;
  ends_with: number | null;
};

const BUYERS_PER_SLICE = 2000;
// The buyers of the next sales may be listed already, because of newer sales. Another statement then reads
// more sales of more games.
const SALES_PER_BUYER = 2;
const GROWTH = 4;
const MAX_READS = 4;

// Each game is probed for each account and email address. Beyond MAX_PROBES, it is faster to read an index of
// all sales of the games, up to MAX_SALES_READ.
const MAX_PROBES = 20_000;
const MAX_SALES_READ = 1_000_000;
/** Maximum number of sales of the listed buyers that are counted. */
export const MAX_SALES_COUNTED = 100_000;

/** Identifies a buyer by the account ID, or else by the email address. */
const BUYER_ID = 'coalesce(account_id::text, lower_ascii(email))';

/** The buyers of the next sales, and the verified email addresses of those with an account. */
const PEOPLE = `people AS MATERIALIZED (
       SELECT DISTINCT account_id, CASE WHEN account_id IS NULL THEN lower_ascii(email) END AS email
       FROM next_sales WHERE email <> '${ERASED_ADDRESS}'),
     addresses AS MATERIALIZED (
       SELECT email FROM people WHERE account_id IS NULL
       UNION ALL SELECT e.email FROM people CROSS JOIN LATERAL (
         SELECT email FROM user_emails WHERE user_id = people.account_id AND verified OFFSET 0) e)`;

/** All sales of these buyers: read for each buyer and game, or else from the sales of all games. */
const THEIR_SALES = `probes AS MATERIALIZED (
       SELECT (SELECT count(*) FROM edited) * ((SELECT count(*) FROM people) + (SELECT count(*) FROM addresses))
         <= ${MAX_PROBES} AS are_few),
     their_sales AS MATERIALIZED (
       SELECT s.purchase_id, 0 AS number_read FROM edited g CROSS JOIN addresses a CROSS JOIN LATERAL (
         SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND email = a.email OFFSET 0) s
       WHERE (SELECT are_few FROM probes)
       UNION ALL SELECT s.purchase_id, 0 FROM edited g CROSS JOIN people CROSS JOIN LATERAL (
         SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND user_id = people.account_id OFFSET 0) s
       WHERE (SELECT are_few FROM probes)
       UNION ALL SELECT s.purchase_id, s.number_read FROM (
         SELECT all_sales.*, row_number() OVER () AS number_read FROM edited g CROSS JOIN LATERAL (
           SELECT purchase_id, email FROM purchase_games WHERE game_id = g.id OFFSET 0) all_sales
         WHERE NOT (SELECT are_few FROM probes) LIMIT ${MAX_SALES_READ}) s
       WHERE number_read = ${MAX_SALES_READ} OR s.email IN (SELECT email FROM addresses)
       UNION ALL SELECT s.purchase_id, 0 FROM people CROSS JOIN LATERAL (
         SELECT purchase_id, game_id FROM purchase_games
         WHERE NOT (SELECT are_few FROM probes) AND user_id = people.account_id LIMIT ${MAX_SALES_COUNTED}) s
       WHERE (s.game_id IN (SELECT id FROM edited)) IS TRUE)`;

/** The complete and refunded sales among them, and the newest one of each buyer. */
const COUNTED = `counted AS MATERIALIZED (
       SELECT p.id, p.created_at, p.currency, p.amount, p.status, p.email, ${BUYER_ACCOUNT_ID} AS account_id
       FROM (
         SELECT purchase_id FROM next_sales
         UNION (SELECT purchase_id FROM their_sales LIMIT ${MAX_SALES_COUNTED})) s
       CROSS JOIN LATERAL (SELECT * FROM purchases WHERE id = s.purchase_id OFFSET 0) p
       WHERE p.status IN ('complete', 'refunded') AND p.email <> '${ERASED_ADDRESS}'),
     newest AS (
       SELECT DISTINCT ON (person) * FROM (SELECT *, ${BUYER_ID} AS person FROM counted) c
       ORDER BY person, created_at DESC, id DESC)`;

/** The orders of each buyer, and what they spent by currency. */
const WITH_TOTALS = `spent AS (
       SELECT person, sum(orders)::bigint AS orders, sum(refunds)::bigint AS refunds, min(first_at) AS first_at,
         json_agg(json_build_object('currency', currency, 'amount', amount) ORDER BY amount DESC, currency) AS totals
       FROM (
         SELECT ${BUYER_ID} AS person, currency, count(*) AS orders, count(*) FILTER (WHERE status = 'refunded') AS refunds,
           coalesce(sum(amount) FILTER (WHERE status = 'complete'), 0)::float8 AS amount, min(created_at) AS first_at
         FROM counted GROUP BY 1, 2) c GROUP BY 1)`;

/**
 * The next buyers of the games that the user can edit, or only of one, by their newest sale, from the place
 * `$sold_at`, `$purchase_id` on. It reads the next sales, as many as `$sales`, then all sales of their
 * buyers: those whose newest sale isn't one of the first are listed elsewhere. The list is complete up to
 * `ends_at`. Null: there are no more sales.
 */
const list = (name: string, direction: Direction) => {
  const { order, within } = ORDERS[direction];
  const reverse = ORDERS[direction === 'older' ? 'newer' : 'older'].order;
  return longRead<Row>(
    name,
    `WITH ${nextSales(ORDERS[direction])},
     next_sales AS MATERIALIZED (
       SELECT c.sold_at, c.purchase_id, p.email, ${BUYER_ACCOUNT_ID} AS account_id
       FROM (
         SELECT sold_at, purchase_id FROM (
           SELECT sold_at, purchase_id FROM found UNION SELECT sold_at, purchase_id FROM complete_to) read
         WHERE NOT EXISTS (SELECT FROM complete_to)
           OR (sold_at, purchase_id) ${within} (SELECT sold_at, purchase_id FROM complete_to)
         ORDER BY sold_at ${order}, purchase_id ${order} LIMIT $sales) c
       CROSS JOIN LATERAL (SELECT user_id, email FROM purchases WHERE id = c.purchase_id OFFSET 0) p),
     ${PEOPLE},
     ${THEIR_SALES},
     ${COUNTED},
     listed AS MATERIALIZED (
       SELECT n.* FROM newest n WHERE id IN (SELECT purchase_id FROM next_sales)
       ORDER BY created_at ${order}, id ${order} LIMIT $limit),
     ${WITH_TOTALS}
     SELECT e.sold_at AS ends_at, e.purchase_id AS ends_with, b.*,
       (SELECT count(*) >= ${MAX_SALES_COUNTED} OR max(number_read) = ${MAX_SALES_READ} FROM their_sales) IS TRUE AS is_partial
     FROM (SELECT) one
     LEFT JOIN (
       SELECT * FROM (
         (SELECT sold_at, purchase_id FROM next_sales WHERE (SELECT count(*) FROM next_sales) >= $sales
          ORDER BY sold_at ${reverse}, purchase_id ${reverse} LIMIT 1)
         UNION ALL SELECT sold_at, purchase_id FROM complete_to) ends
       ORDER BY sold_at ${order}, purchase_id ${order} LIMIT 1) e ON true
     LEFT JOIN (
       SELECT l.account_id, l.email, l.id AS last_sale, l.created_at AS last_at, s.orders, s.refunds, s.first_at, s.totals,
         (SELECT username FROM users WHERE id = l.account_id) AS username
       FROM listed l JOIN spent s USING (person)) b ON true
     ORDER BY b.last_at ${order}, b.last_sale ${order}`,
    'user $user_id',
  );
};

const BUYERS_LISTS = {
  older: list('seller_buyers', 'older'),
  newer: list('seller_buyers_before', 'newer'),
};

/** The people who bought a seller's games. */
@Injectable()
export class BuyersService {
  constructor(private readonly database: Database) {}

  /**
   * The next buyers in a direction, in its order. If all of the next sales are by buyers who are listed
   * elsewhere, there are fewer buyers, but still a next place.
   */
  async slice(
    seller_id: number,
    game_id: number | undefined,
    limit: number,
    direction: Direction = 'older',
    from: Place = FIRST_PLACE[direction],
  ): Promise<Buyers> {
    const buyers: Buyer[] = [];
    let isPartial = false;
    for (let i = 0, sales = SALES_PER_BUYER * (limit + 1); i < MAX_READS; i++, sales *= GROWTH) {
      const rows = await this.database.rows(BUYERS_LISTS[direction], {
        user_id: seller_id,
        game_id: game_id ?? null,
        since: '-infinity',
        until: 'infinity',
        ...from,
        games_read: i === 0 ? GAMES_READ : FILTERED_GAMES_READ,
        sales_per_game: i === 0 ? sales : null,
        sales,
        limit: limit + 1 - buyers.length,
      });
      buyers.push(...rows.filter((row): row is typeof row & Buyer => row.last_sale !== null));
      const { ends_at, ends_with, is_partial } = rows[0]!;
      isPartial ||= is_partial;
      if (buyers.length > limit) {
        return { buyers: buyers.slice(0, limit), next: placeOfBuyer(buyers[limit - 1]!), isPartial };
      }
      if (ends_at === null) return { buyers, next: undefined, isPartial };
      from = { sold_at: ends_at, purchase_id: ends_with! };
    }
    return { buyers, next: from, isPartial };
  }

  async *all(seller_id: number, game_id: number | undefined): AsyncGenerator<Buyer[]> {
    for (let from: Place | undefined = FIRST_PLACE.older; from;) {
      const slice: Buyers = await this.slice(seller_id, game_id, BUYERS_PER_SLICE, 'older', from);
      yield slice.buyers;
      from = slice.next;
    }
  }
}

/** The place of a buyer is that of their newest sale. */
export const placeOfBuyer = ({ last_at, last_sale }: Pick<Buyer, 'last_at' | 'last_sale'>): Place => ({
  sold_at: last_at,
  purchase_id: last_sale,
});
