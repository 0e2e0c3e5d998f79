import { bind, type BoundStatement, longRead, read, statement } from '../../platform/database/statement';
import { addSaleOfOneGame, addSales, countPurchases, subtractSales } from '../earnings/earnings';
import { cameWithSale } from '../ownership/sold-keys';
import type { Purchase } from '../purchase.entity';
import { PURCHASE_ROW, type PurchaseRow } from '../purchase.row';
import { isErased } from '../../auth/accounts/erased-users';
import { HAS_WEBHOOKS } from '../../events/announcement';
import { announceRefund, announceSale } from '../messages/sale-messages';

export interface SaleRow extends PurchaseRow, Pick<Purchase, 'user_id' | 'bundle_id'> {
  reference: string | null;
  /** All games of the purchase; `game_ids` is null unless it is a bundle. */
  all_game_ids: number[];
  keys: { id: number; game_id: number; key: string }[];
  /** Whether keys were created at the time of the purchase, and not later by an import. */
  sold_with_keys: boolean;
}

// A purchase can have this many games, each with a key.
const MAX_KEYS_OF_SALE = 10_000;

export const SALE = read<SaleRow>(
  'sale',
  `SELECT ${PURCHASE_ROW}, p.user_id, p.bundle_id,
     (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
     ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) AS all_game_ids,
     (SELECT coalesce(json_agg(k ORDER BY k.game_id, k.id), '[]') FROM (
        SELECT id, game_id, key FROM download_keys dk
        WHERE purchase_id = p.id AND ${cameWithSale('dk')}
        ORDER BY game_id, id LIMIT ${MAX_KEYS_OF_SALE}) k) AS keys,
     EXISTS (SELECT FROM download_keys dk
             WHERE purchase_id = p.id AND created_at = p.created_at AND ${cameWithSale('dk')}) AS sold_with_keys
   FROM purchases p WHERE p.id = $purchase_id`,
);

// The subquery lets PostgreSQL reuse the plan. For a bare parameter, it plans each time for the number of
// IDs.
const GIVEN_GAMES = 'ARRAY(SELECT unnest($game_ids::bigint[]))';

export interface NewSale extends Pick<SaleRow, 'created_at' | 'email' | 'keys'> {
  purchase_id: number;
}

/** Why nothing was sold. */
export interface Unsold {
  purchase_id: null;
  /** The purchase that already has this reference. */
  sold: number | null;
  games_exist: boolean;
  user_exists: boolean;
  /** Whether another account has verified the given email address. */
  of_another: boolean;
  /** The given address, or one that the account has verified. */
  email: string | null;
}

export type SaleOutcome = (NewSale | Unsold) & { has_webhooks: boolean };

export interface SoldBundle {
  version: number;
  /** The IDs of the games in ascending order, the order in which they are locked. */
  game_ids: number[];
}

/** The games of the bundle. */
export const SOLD_BUNDLE = read<SoldBundle>(
  'sold_bundle',
  `SELECT version, ARRAY(SELECT game_id FROM bundle_games WHERE bundle_id = b.id ORDER BY game_id) AS game_ids
   FROM bundles b WHERE b.id = $bundle_id`,
);

export const PURCHASE_GAMES = read<{ game_ids: number[]; has_webhooks: boolean }>(
  'sold_games',
  `SELECT ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) AS game_ids,
     ${HAS_WEBHOOKS} AS has_webhooks
   FROM purchases p WHERE p.id = $purchase_id`,
);

// Games are locked after the purchase, in the lock order of an import, which may have changed them since they were
// read. The statement is separate so that the statements after it see what was committed while it waited.
const LOCK_GAMES = statement(
  'refund_lock_games',
  `SELECT id FROM games WHERE id = ANY (ARRAY(
     SELECT unnest($game_ids::bigint[]) UNION SELECT game_id FROM purchase_games WHERE purchase_id = $purchase_id))
   ORDER BY id FOR NO KEY UPDATE`,
  'game $game_ids',
);

const SALE_COLUMNS = [
  'purchase_type',
  'user_id',
  'source',
  'currency',
  'amount',
  'sale_rate',
  'quantity',
  'donation',
  'bundle_id',
] as const satisfies (keyof Purchase)[];

// SELL sets it for its transaction, so that the statements after it can be sent in the same round trip.
const SOLD = `'gamewharf.sold'`;
/** The ID of the purchase that SELL stored; null: nothing was sold. */
const NEW_ID = `(SELECT nullif(current_setting(${SOLD}), '')::bigint)`;

// The copies of the purchase are written here: a trigger would look for a purchase that this statement
// writes. An erasure locks the account too: it finds every earlier purchase, and a later one is rejected. An
// import that changes a bundle locks it too: it finds every earlier purchase, and a later one has the new
// games. A repeated request locks neither.
export const SELL = statement<SaleOutcome>(
  'sell',
  `WITH earlier AS MATERIALIZED (SELECT purchase_id FROM purchase_references WHERE reference = $reference
   ), buyer AS MATERIALIZED (
     SELECT FROM users u WHERE id = $user_id AND NOT ${isErased('u')} AND NOT EXISTS (SELECT FROM earlier) FOR KEY SHARE
   ), bundle AS MATERIALIZED (
     SELECT FROM bundles WHERE id = $bundle_id AND version = $bundle_version AND NOT EXISTS (SELECT FROM earlier) FOR SHARE
   ), request AS MATERIALIZED (
     SELECT (SELECT purchase_id FROM earlier) AS sold,
       (SELECT count(*) FROM games WHERE id = ANY (${GIVEN_GAMES})) = cardinality($game_ids::bigint[]) AS games_exist,
       $user_id::bigint IS NULL OR EXISTS (SELECT FROM buyer) AS user_exists,
       $bundle_id::bigint IS NULL OR EXISTS (SELECT FROM bundle) AS bundle_is_current,
       EXISTS (SELECT FROM user_emails WHERE email = lower_ascii($email) AND verified AND user_id <> $user_id) AS of_another,
       coalesce($email, (
         SELECT email FROM user_emails WHERE user_id = $user_id AND verified ORDER BY NOT is_primary, email LIMIT 1)) AS email,
       ${HAS_WEBHOOKS} AS has_webhooks
   ), purchase AS (
     INSERT INTO purchases (email, ${SALE_COLUMNS.join(', ')}, created_at)
     SELECT r.email, ${SALE_COLUMNS.map((column) => `$${column}`).join(', ')}, coalesce($created_at::timestamptz, now())
     FROM request r
     WHERE sold IS NULL AND games_exist AND user_exists AND bundle_is_current AND NOT of_another AND r.email IS NOT NULL
       AND (NOT has_webhooks OR $announces)
     RETURNING id, user_id, lower_ascii(email) AS email, created_at
   ), referred AS (
     INSERT INTO purchase_references (reference, purchase_id) SELECT $reference, id FROM purchase WHERE $reference::text IS NOT NULL
   ), sold_games AS (
     INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
     SELECT p.id, g.id, p.user_id, p.email, p.created_at FROM purchase p, unnest($game_ids::bigint[]) AS g (id)
   ), sold_keys AS (
     INSERT INTO download_keys (key, game_id, purchase_id, account_id, purchase_email, created_at)
     SELECT k.key, k.game_id, p.id, p.user_id, p.email, p.created_at
     FROM purchase p, unnest($game_ids::bigint[], $keys::text[]) AS k (game_id, key) WHERE k.key IS NOT NULL
     RETURNING id, game_id, key
   )
   SELECT p.id AS purchase_id, p.created_at,
     (SELECT coalesce(json_agg(k ORDER BY k.game_id, k.id), '[]') FROM sold_keys k) AS keys,
     r.sold, r.games_exist, r.user_exists, r.of_another, r.email, r.has_webhooks,
     set_config(${SOLD}, coalesce(p.id::text, ''), true)
   FROM request r LEFT JOIN purchase p ON true`,
  'game $game_ids',
);

/**
 * Adds the shares of the purchase, or subtracts them (-1). With OFFSET 0, PostgreSQL computes the view for this
 * purchase only. The subquery lets it reuse the plan, which takes longer to make than to execute.
 */
const sharesTimes = (sign: 1 | -1, id = '(SELECT $purchase_id::bigint)') =>
  `(SELECT game_id, currency, day, ${sign} AS purchases, ${sign} * amount AS amount
    FROM purchase_shares WHERE purchase_id = ${id} OFFSET 0)`;

const COUNT_SALE = statement('sale_count', addSales(sharesTimes(1, NEW_ID)));
// Without the view and the sums, it takes half as long.
const COUNT_SALE_OF_ONE_GAME = statement(
  'sale_count_one_game',
  addSaleOfOneGame(
    `SELECT $game_id::bigint AS game_id, 1 AS purchases, currency, amount, created_at FROM purchases WHERE id = ${NEW_ID}`,
  ),
);

const ANNOUNCE_SALE = announceSale(NEW_ID);

const LOCK_PURCHASE = statement(
  'refund_lock',
  'SELECT id FROM purchases WHERE id = $purchase_id FOR NO KEY UPDATE',
);
const UNCOUNT_SALE = statement('refund_count', countPurchases(sharesTimes(-1)));
const SUBTRACT_SALE = Object.entries(subtractSales(sharesTimes(-1))).map(([of, text]) =>
  statement(`refund_${of}`, text),
);
// No row: the purchase was already refunded. A sale has an earlier refund if an import completed it again.
export const REFUND_PURCHASE = statement<{ id: number }>(
  'refund',
  `WITH refunded AS (
     UPDATE purchases SET status = 'refunded' WHERE id = $purchase_id AND status <> 'refunded' RETURNING id),
   recorded AS (
     INSERT INTO refunds (purchase_id, user_id) SELECT id, $user_id FROM refunded
     ON CONFLICT (purchase_id) DO UPDATE SET refunded_at = excluded.refunded_at, user_id = excluded.user_id)
   SELECT id FROM refunded`,
);
const REVOKE_KEYS = statement(
  'refund_revoke',
  `UPDATE download_keys SET revoked_at = now()
   WHERE purchase_id = $purchase_id AND revoked_at IS NULL AND NOT $keep_keys
     AND (NOT $once OR EXISTS (SELECT FROM purchases WHERE id = $purchase_id AND status <> 'refunded'))`,
);

export interface Sale extends Pick<Purchase, (typeof SALE_COLUMNS)[number]> {
  email: string | null;
  created_at: string | null;
  reference: string | null;
  /** The version of the bundle when its games were read. */
  bundle_version: number | null;
  /** The IDs of the games in ascending order, the order in which they are locked. */
  game_ids: number[];
  /** One per game, or none. */
  keys: string[];
  /** Whether it is announced. Without, it is not sold if there are webhooks. */
  announces: boolean;
}

/** A whole sale, in one round trip. */
export const sell = (sale: Sale): BoundStatement[] => [
  bind(SELL, { ...sale }),
  sale.game_ids.length === 1
    ? bind(COUNT_SALE_OF_ONE_GAME, { game_id: sale.game_ids[0] })
    : bind(COUNT_SALE, {}),
  ...(sale.announces ? [bind(ANNOUNCE_SALE, {})] : []),
];

/** `once`: keys that an earlier refund kept aren't revoked. */
export const refund = (
  { purchase_id, keep_keys, once }: { purchase_id: number; keep_keys: boolean; once: boolean },
  game_ids: number[],
  has_webhooks: boolean,
  user_id: number | null,
): BoundStatement[] => [
  bind(LOCK_PURCHASE, { purchase_id }),
  ...(has_webhooks ? [announceRefund(purchase_id)] : []),
  bind(LOCK_GAMES, { game_ids, purchase_id }),
  bind(UNCOUNT_SALE, { purchase_id }),
  ...SUBTRACT_SALE.map((one) => bind(one, { purchase_id })),
  bind(REVOKE_KEYS, { purchase_id, keep_keys, once }),
  bind(REFUND_PURCHASE, { purchase_id, user_id }),
  bind(SALE, { purchase_id }),
];

export interface ListedPurchase extends Pick<
  Purchase,
  'id' | 'created_at' | 'email' | 'amount' | 'currency' | 'status'
> {
  reference: string | null;
  /** A text such as `ash-beetle/brave-arcade`. */
  games: string[];
}

/** Maximum number of games of a bundle that are listed. */
const MAX_LISTED_GAMES = 20;

const newestPurchases = (name: string, from: string) =>
  longRead<ListedPurchase>(
    name,
    `SELECT p.id, p.created_at, p.email, p.amount, p.currency, p.status,
       (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
       ARRAY(SELECT g.owner_name || '/' || g.slug FROM purchase_games sold JOIN games g ON g.id = sold.game_id
             WHERE sold.purchase_id = p.id ORDER BY g.id LIMIT ${MAX_LISTED_GAMES}) AS games
     FROM ${from} ORDER BY p.created_at DESC, p.id DESC LIMIT $count`,
  );

const OF_GAME = 'purchase_games pg JOIN purchases p ON p.id = pg.purchase_id WHERE pg.game_id = $game_id';
/** The purchases of the account, and those with the address or one that the account has verified. */
const OF_BUYER = `(p.user_id = $user_id OR lower_ascii(p.email) = lower_ascii($email)
  OR lower_ascii(p.email) IN (SELECT email FROM user_emails WHERE user_id = $user_id AND verified))`;

export const NEWEST_PURCHASES = {
  all: newestPurchases('newest_sales', 'purchases p'),
  ofGame: newestPurchases('newest_sales_of_game', OF_GAME),
  ofBuyer: newestPurchases('newest_sales_of_buyer', `purchases p WHERE ${OF_BUYER}`),
  ofBuyerAndGame: newestPurchases('newest_sales_of_buyer_and_game', `${OF_GAME} AND ${OF_BUYER}`),
};
