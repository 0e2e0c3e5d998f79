import { Injectable } from '@nestjs/common';
import { canEdit, editedBy } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import type { Purchase } from '../purchase.entity';
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
  revoked: boolean;
  /** The username of the account that claimed it. */
  claimed_by: string | null;
}

/** A seller's view of a sale: their own games and the keys of these, not those of other sellers in a bundle. */
export interface SellerSale extends Pick<
  Purchase,
  'id' | 'created_at' | 'email' | 'source' | 'currency' | 'amount' | 'sale_rate' | 'quantity'
> {
  status: 'complete' | 'refunded';
  reference: string | null;
  /** The username of the account that bought it, otherwise of the one that verified the email address. */
  username: string | null;
  games: SoldGame[];
  own_games: number;
  all_games: number;
  keys: KeyState[];
}

/** The maximum number of games and keys shown of a sale. Of keys, one more is read. */
export const SHOWN_OF_SALE = 100;
export const SHOWN_SALES = 50;
// Candidates of each type, of which the newest are shown.
const MAX_FOUND = 200;

const KEY = `k.id, k.game_id, g.title, k.key, k.downloads, k.revoked_at IS NOT NULL AS revoked,
  (SELECT username FROM users WHERE id = k.user_id) AS claimed_by`;

/** The games that $1 can edit. */
const OWN = `(${editedBy('$1')})`;

/** `found` selects purchase IDs. Newest first, without those that contain no game which $1 can edit. */
const list = (name: string, found: string) =>
  longRead<SellerSale>(
    name,
    `SELECT p.id, p.created_at, p.email, p.source, p.currency, p.amount, p.sale_rate, p.quantity, p.status, own.*,
       (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
       (SELECT username FROM users WHERE id = coalesce(p.user_id,
          (SELECT user_id FROM user_emails WHERE email = lower_ascii(p.email) AND verified))) AS username,
       (SELECT count(*) FROM purchase_games WHERE purchase_id = p.id) AS all_games,
       (SELECT coalesce(json_agg(k), '[]') FROM (
          SELECT ${KEY} FROM download_keys k JOIN games g ON g.id = k.game_id
          WHERE k.purchase_id = p.id AND ${canEdit('g', '$1')}
          ORDER BY k.game_id, k.created_at DESC, k.id DESC LIMIT ${SHOWN_OF_SALE + 1}) k) AS keys
     FROM (SELECT DISTINCT purchase_id FROM (${found}) found) found
     JOIN purchases p ON p.id = found.purchase_id AND p.status IN ('complete', 'refunded')
     CROSS JOIN LATERAL (
       SELECT count(*) AS own_games,
         coalesce(json_agg(json_build_object('id', g.id, 'title', g.title) ORDER BY g.id) FILTER (WHERE place <= ${SHOWN_OF_SALE}), '[]') AS games
       FROM (SELECT g.id, g.title, row_number() OVER (ORDER BY g.id) AS place
             FROM purchase_games pg JOIN games g ON g.id = pg.game_id
             WHERE pg.purchase_id = p.id AND ${canEdit('g', '$1')}) g) own
     WHERE own.own_games > 0
     ORDER BY p.created_at DESC, p.id DESC LIMIT ${SHOWN_SALES + 1}`,
    'user $1',
  );

const SELLER_SALE = list('seller_sale', 'SELECT $2::bigint AS purchase_id');

const SALES_OF_BUYER = list(
  'seller_sales_of_buyer',
  `SELECT purchase_id FROM ${OWN} g CROSS JOIN LATERAL (
     SELECT purchase_id, sold_at FROM purchase_games
     WHERE game_id = g.id AND email = lower_ascii($2) AND sold_at IS NOT NULL OFFSET 0) pg
   ORDER BY sold_at DESC, purchase_id DESC LIMIT ${MAX_FOUND}`,
);

/** Keys for an email address without a purchase. */
const KEYS_OF_BUYER = longRead<KeyState>(
  'seller_keys_of_buyer',
  `SELECT ${KEY} FROM ${OWN} own CROSS JOIN LATERAL (
     SELECT * FROM download_keys
     WHERE lower_ascii(email) = lower_ascii($2) AND game_id = own.id AND revoked_at IS NULL AND purchase_id IS NULL
     ORDER BY created_at DESC, id DESC LIMIT ${SHOWN_OF_SALE + 1} OFFSET 0) k
   JOIN games g ON g.id = k.game_id
   ORDER BY k.created_at DESC, k.id DESC LIMIT ${SHOWN_OF_SALE + 1}`,
  'user $1',
);

// $2: the start of an email address, a username or a reference; $3: the same text as the ID of a sale or a key. Reads
// one index entry per email address from the text on; addresses with that start come first.
export const SEARCH = list(
  'seller_search',
  `(SELECT purchase_id FROM ${OWN} g CROSS JOIN LATERAL (
      SELECT purchase_id, email FROM purchase_games
      WHERE game_id = g.id AND email >= lower_ascii($2) ORDER BY email LIMIT ${SHOWN_SALES + 1}) pg
    WHERE starts_with(email, lower_ascii($2)) ORDER BY email LIMIT ${MAX_FOUND})
   UNION ALL
   (SELECT bought.purchase_id FROM ${OWN} g
    CROSS JOIN (SELECT id FROM users WHERE lower_ascii(username) = lower_ascii($2) OFFSET 0) named
    CROSS JOIN LATERAL (${boughtBy('named.id')} OFFSET 0) bought LIMIT ${MAX_FOUND})
   UNION ALL SELECT purchase_id FROM purchase_references WHERE reference = $2
   UNION ALL SELECT k.purchase_id FROM download_keys k JOIN games g ON g.id = k.game_id
     WHERE k.id = $3 AND ${canEdit('g', '$1')}
   UNION ALL SELECT $3::bigint`,
);

/** The sales of all games that a user can edit. */
@Injectable()
export class SellerSalesService {
  constructor(private readonly database: Database) {}

  /** Undefined if it doesn't exist, or isn't of a game that the user can edit. */
  sale(seller_id: number, purchase_id: number): Promise<SellerSale | undefined> {
    return this.database.row(SELLER_SALE, [seller_id, purchase_id]);
  }

  /** At most one more than SHOWN_SALES. */
  ofBuyer(seller_id: number, email: string): Promise<SellerSale[]> {
    return this.database.rows(SALES_OF_BUYER, [seller_id, email]);
  }

  keysOfBuyer(seller_id: number, email: string): Promise<KeyState[]> {
    return this.database.rows(KEYS_OF_BUYER, [seller_id, email]);
  }

  /**
   * By the start of an email address, or a complete username, reference, sale ID or key ID. At most one more than
   * SHOWN_SALES.
   */
  search(seller_id: number, term: string): Promise<SellerSale[]> {
    const id = /^\d{1,15}$/.test(term) ? Number(term) : null;
    return this.database.rows(SEARCH, [seller_id, term, id]);
  }
}
