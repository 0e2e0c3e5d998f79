import { Injectable } from '@nestjs/common';
import { canEdit, editedBy } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { longRead, read } from '../../platform/database/statement';
import type { Purchase } from '../purchase.entity';
import { BUYER_ACCOUNT_ID } from '../purchase.row';
import { boughtBy } from '../purchases.service';

interface SoldGame {
  id: number;
  title: string;
}

export interface KeyState {
  id: number;
  game_id: number;
  title: string;
  key: string;
  downloads: number;
  /** Null: unknown. */
  last_download_at: string | null;
  revoked: boolean;
  /** The username of the account that claimed it. */
  claimed_by: string | null;
  /** Null: unknown. */
  claimed_at: string | null;
}

/** The account, otherwise the email address, that bought a sale. */
export interface Person {
  account_id: number | null;
  email: string;
}

/** What a person bought in one currency. */
export interface BuyerTotals {
  currency: string;
  orders: number;
  refunds: number;
  /** Total of complete sales. */
  amount: number;
  first_at: string;
  last_at: string;
}

/** A seller's view of a sale: their own games and the keys of these, not those of other sellers in a bundle. */
export interface SellerSale extends Pick<
  Purchase,
  'id' | 'created_at' | 'email' | 'source' | 'currency' | 'amount' | 'sale_rate' | 'quantity'
> {
  status: 'complete' | 'refunded';
  reference: string | null;
  /** Null: it isn't refunded, or the time is unknown. */
  refund: { refunded_at: string; refunded_by: string | null } | null;
  /** The account that bought it, otherwise the one that verified the email address. */
  account_id: number | null;
  /** The username of the account that bought it, otherwise of the one that verified the email address. */
  username: string | null;
  /** The title of the bundle that was sold. */
  bundle: string | null;
  games: SoldGame[];
  own_games: number;
  all_games: number;
  keys: KeyState[];
}

/** The maximum number of games and keys shown of a sale. Of keys, one more is read. */
export const SHOWN_OF_SALE = 100;
export const SHOWN_SALES = 50;
// Maximum number of candidates of each type. The newest of them are shown.
const MAX_FOUND = 200;
/** The shortest part of an email address or a name that is searched for. */
const MIN_PART = 3;
const MAX_SEARCHED_SALES = 200_000;
const MAX_NAMED = 20_000;
/** Maximum number of purchases of a person that are summed. */
const MAX_SUMMED = 10_000;

const KEY_COLUMNS = `k.id, k.game_id, g.title, k.key, k.downloads, k.last_download_at::text, k.revoked_at IS NOT NULL AS revoked,
  (SELECT username FROM users WHERE id = k.user_id) AS claimed_by, k.claimed_at::text`;

/** The games that the seller can edit, read once. */
const OWN_GAMES = `own AS MATERIALIZED (${editedBy('$seller_id')})`;

// A join isn't used, because the planner may check each of a bundle's games against all games of the seller.
const isOwn = (game_id: string) => `(${game_id} IN (SELECT id FROM own)) IS TRUE`;

const isEditable = (game_id: string) =>
  `EXISTS (SELECT FROM games g WHERE g.id = ${game_id} AND ${canEdit('g', '$seller_id')})`;

/**
 * `found` selects purchase IDs. Newest first, without those for which the condition on the purchase `p` is false.
 * `own`: a condition on the ID of a game.
 */
const list = (name: string, found: string, condition: string, own = isOwn) =>
  longRead<SellerSale>(
    name,
    `${own === isOwn ? `WITH ${OWN_GAMES} ` : ''}SELECT p.id, p.created_at, p.email, p.source, p.currency, p.amount, p.sale_rate, p.quantity, p.status,
       games.own_games,
       (SELECT coalesce(json_agg(json_build_object('id', g.id, 'title', g.title) ORDER BY g.id), '[]')
        FROM unnest(games.ids[1:${SHOWN_OF_SALE}]) AS shown (id) JOIN games g ON g.id = shown.id) AS games,
       (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
       (SELECT json_build_object('refunded_at', r.refunded_at::text,
                 'refunded_by', (SELECT username FROM users WHERE id = r.user_id))
        FROM refunds r WHERE r.purchase_id = p.id AND p.status = 'refunded') AS refund,
       ${BUYER_ACCOUNT_ID} AS account_id, (SELECT username FROM users WHERE id = ${BUYER_ACCOUNT_ID}) AS username,
       (SELECT title FROM bundles WHERE id = p.bundle_id) AS bundle,
       (SELECT count(*) FROM purchase_games WHERE purchase_id = p.id) AS all_games,
       (SELECT coalesce(json_agg(k), '[]') FROM (
          SELECT ${KEY_COLUMNS} FROM (
            SELECT * FROM download_keys WHERE purchase_id = p.id AND ${own('game_id')}
            ORDER BY game_id, created_at DESC, id DESC LIMIT ${SHOWN_OF_SALE + 1}) k JOIN games g ON g.id = k.game_id
          ORDER BY k.game_id, k.created_at DESC, k.id DESC) k) AS keys
     FROM (
       SELECT p.* FROM (SELECT DISTINCT purchase_id FROM (${found}) found) found
       CROSS JOIN LATERAL (SELECT * FROM purchases WHERE id = found.purchase_id OFFSET 0) p
       WHERE p.status IN ('complete', 'refunded') AND ${condition}
       ORDER BY p.created_at DESC, p.id DESC LIMIT ${SHOWN_SALES + 1}) p
     CROSS JOIN LATERAL (
       SELECT count(*) AS own_games, array_agg(game_id ORDER BY game_id) AS ids
       FROM purchase_games WHERE purchase_id = p.id AND ${own('game_id')}) games
     ORDER BY p.created_at DESC, p.id DESC`,
    'user $seller_id',
  );

const hasOwnGame = (own: (game_id: string) => string) =>
  `EXISTS (SELECT FROM purchase_games pg WHERE pg.purchase_id = p.id AND ${own('pg.game_id')})`;

const SELLER_SALE = list(
  'seller_sale',
  'SELECT $purchase_id::bigint AS purchase_id',
  hasOwnGame(isEditable),
  isEditable,
);

/** The sales of the account, or with the email address, whose buyer is that person. */
const PURCHASES_OF_PERSON = `
  SELECT purchase_id FROM own g CROSS JOIN LATERAL (
    ${boughtBy('$account_id::bigint')}
    UNION ALL SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND email = lower_ascii($email) OFFSET 0) bought`;
const IS_OF_PERSON = `${BUYER_ACCOUNT_ID} IS NOT DISTINCT FROM $account_id`;

const SALES_OF_PERSON = list(
  'seller_sales_of_person',
  `${PURCHASES_OF_PERSON} LIMIT ${MAX_SUMMED}`,
  IS_OF_PERSON,
);

const TOTALS_BY_PERSON = longRead<BuyerTotals>(
  'seller_person_totals',
  `WITH ${OWN_GAMES} SELECT p.currency, count(*) AS orders, count(*) FILTER (WHERE p.status = 'refunded') AS refunds,
     coalesce(sum(p.amount) FILTER (WHERE p.status = 'complete'), 0)::float8 AS amount,
     min(p.created_at) AS first_at, max(p.created_at) AS last_at
   FROM (SELECT DISTINCT purchase_id FROM (${PURCHASES_OF_PERSON} LIMIT ${MAX_SUMMED}) found) found
   JOIN purchases p ON p.id = found.purchase_id AND p.status IN ('complete', 'refunded')
   WHERE ${IS_OF_PERSON} GROUP BY 1 ORDER BY 2 DESC, 1`,
  'user $seller_id',
);

const NEWEST_KEYS = `ORDER BY created_at DESC, id DESC LIMIT ${SHOWN_OF_SALE + 1}`;

/** Keys of the person without a purchase. */
const KEYS_OF_PERSON = longRead<KeyState>(
  'seller_keys_of_person',
  `WITH ${OWN_GAMES} SELECT ${KEY_COLUMNS} FROM (
     SELECT theirs.* FROM own CROSS JOIN LATERAL (
       (SELECT * FROM download_keys
        WHERE account_id = $account_id AND game_id = own.id AND revoked_at IS NULL AND purchase_id IS NULL ${NEWEST_KEYS})
       UNION
       (SELECT * FROM download_keys
        WHERE lower_ascii(email) = lower_ascii($email) AND game_id = own.id AND revoked_at IS NULL AND purchase_id IS NULL
        ${NEWEST_KEYS})) theirs
     ${NEWEST_KEYS}) k
   JOIN games g ON g.id = k.game_id
   ORDER BY k.created_at DESC, k.id DESC`,
  'user $seller_id',
);

// The term is a part of an email address or a name, or a reference; the ID is the same text as the ID of a sale or a key.
// The start of an email address is found among any number of sales, because one index entry is read per email
// address from the text on. Other parts are found among MAX_SEARCHED_SALES, and a name among the newest
// MAX_NAMED.
export const SEARCH = list(
  'seller_search',
  `(SELECT purchase_id FROM own g CROSS JOIN LATERAL (
      SELECT purchase_id, email FROM purchase_games
      WHERE game_id = g.id AND email >= lower_ascii($term) ORDER BY email LIMIT ${SHOWN_SALES + 1}) pg
    WHERE starts_with(email, lower_ascii($term)) ORDER BY email LIMIT ${MAX_FOUND})
   UNION ALL
   (SELECT purchase_id FROM (
      SELECT pg.purchase_id, pg.email FROM own g CROSS JOIN LATERAL (
        SELECT purchase_id, email FROM purchase_games WHERE game_id = g.id OFFSET 0) pg LIMIT ${MAX_SEARCHED_SALES}) read
    WHERE length($term) >= ${MIN_PART} AND position(lower_ascii($term) IN email) > 0
    ORDER BY purchase_id DESC LIMIT ${MAX_FOUND})
   UNION ALL
   (SELECT read.purchase_id FROM (
      SELECT pg.* FROM own g CROSS JOIN LATERAL (
        SELECT purchase_id, email, user_id FROM purchase_games WHERE game_id = g.id AND sold_at IS NOT NULL
        ORDER BY sold_at DESC, purchase_id DESC LIMIT ${MAX_NAMED}) pg LIMIT ${MAX_NAMED}) read
    CROSS JOIN LATERAL (
      SELECT username, display_name FROM users
      WHERE id = coalesce(read.user_id, (SELECT user_id FROM user_emails WHERE email = read.email AND verified)) OFFSET 0) u
    WHERE length($term) >= ${MIN_PART} AND position('@' IN $term) = 0
      AND (position(lower($term) IN lower(u.username)) > 0 OR position(lower($term) IN lower(u.display_name)) > 0)
    ORDER BY purchase_id DESC LIMIT ${MAX_FOUND})
   UNION ALL
   (SELECT bought.purchase_id FROM own g
    CROSS JOIN (SELECT id FROM users WHERE lower_ascii(username) = lower_ascii($term) OFFSET 0) named
    CROSS JOIN LATERAL (${boughtBy('named.id')} OFFSET 0) bought LIMIT ${MAX_FOUND})
   UNION ALL SELECT purchase_id FROM purchase_references WHERE reference = $term
   UNION ALL SELECT k.purchase_id FROM download_keys k JOIN games g ON g.id = k.game_id
     WHERE k.id = $id AND ${canEdit('g', '$seller_id')}
   UNION ALL SELECT $id::bigint`,
  hasOwnGame(isOwn),
);

const KEY_WITH_TEXT = read<{ id: number; game_id: number; purchase_id: number | null }>(
  'seller_key',
  `SELECT k.id, k.game_id, k.purchase_id FROM download_keys k JOIN games g ON g.id = k.game_id
   WHERE k.key = $key AND ${canEdit('g', '$seller_id')}`,
);

/** The sales of all games that a user can edit. */
@Injectable()
export class SellerSalesService {
  constructor(private readonly database: Database) {}

  /** Undefined if the sale doesn't exist, or isn't of a game that the user can edit. */
  sale(seller_id: number, purchase_id: number): Promise<SellerSale | undefined> {
    return this.database.row(SELLER_SALE, { seller_id, purchase_id });
  }

  /** Returns SHOWN_SALES sales, and one more if there are more. */
  ofPerson(seller_id: number, { account_id, email }: Person): Promise<SellerSale[]> {
    return this.database.rows(SALES_OF_PERSON, { seller_id, account_id, email });
  }

  buyerTotals(seller_id: number, { account_id, email }: Person): Promise<BuyerTotals[]> {
    return this.database.rows(TOTALS_BY_PERSON, { seller_id, account_id, email });
  }

  keysOfPerson(seller_id: number, { account_id, email }: Person): Promise<KeyState[]> {
    return this.database.rows(KEYS_OF_PERSON, { seller_id, account_id, email });
  }

  /** The key with this text, of a game that the user can edit. */
  keyWithText(seller_id: number, key: string) {
    return this.database.row(KEY_WITH_TEXT, { seller_id, key });
  }

  /**
   * Finds sales by a part of an email address or a name, or by a reference, sale ID or key ID: at most one more than
   * SHOWN_SALES.
   */
  search(seller_id: number, term: string): Promise<SellerSale[]> {
    const id = /^\d{1,15}$/.test(term) ? Number(term) : null;
    return this.database.rows(SEARCH, { seller_id, term, id });
  }
}
