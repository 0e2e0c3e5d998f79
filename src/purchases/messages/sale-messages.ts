import { isSubscribed, type WebhookEvent } from '../../operator/webhooks/webhook-events';
import { bind, type BoundStatement, statement } from '../../platform/database/statement';

/**
 * Users who can edit a game of the purchase `p`. OFFSET 0 below: PostgreSQL could otherwise find them again for each
 * webhook.
 */
const EDITORS = `ARRAY(
  SELECT g.user_id FROM purchase_games pg JOIN games g ON g.id = pg.game_id WHERE pg.purchase_id = p.id
  UNION SELECT a.user_id FROM purchase_games pg JOIN game_admins a ON a.game_id = pg.game_id WHERE pg.purchase_id = p.id)`;

// Contains no buyer, so that an erasure needn't read it. A reference may contain the buyer, so it is read when the
// message is sent.
const announcement = (event: WebhookEvent, status: string) =>
  statement(
    `announce_${status}`,
    `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data)
     SELECT gen_random_uuid(), w.id, '${event}', p.id, json_build_object(
       'id', p.id, 'game_ids', g.ids, 'status', '${status}', 'amount', p.amount, 'currency', p.currency,
       'source', p.source, 'created_at', to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
     FROM purchases p
     CROSS JOIN LATERAL (SELECT array_agg(game_id ORDER BY game_id) AS ids FROM purchase_games WHERE purchase_id = p.id) g
     CROSS JOIN LATERAL (SELECT ${EDITORS} AS users OFFSET 0) editors
     JOIN webhooks w ON (w.user_id IS NULL OR w.user_id = ANY (editors.users))
       AND w.ended_at IS NULL AND '${event}' = ANY (w.events) AND ${isSubscribed('p.id')}
     WHERE p.id = $1 AND p.status <> 'refunded'`,
  );

const SALE = announcement('purchase.completed', 'complete');
const REFUND = announcement('purchase.refunded', 'refunded');

/** The last statement of a sale's transaction. */
export const announceSale = (purchase_id: number): BoundStatement => bind(SALE, [purchase_id]);

/** Runs before the purchase is marked as refunded, so that a repeated refund sends nothing. */
export const announceRefund = (purchase_id: number): BoundStatement => bind(REFUND, [purchase_id]);
