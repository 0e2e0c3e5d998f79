import { bind, type BoundStatement, statement } from '../../platform/database/statement';

export const WEBHOOK_EVENTS = ['purchase.completed', 'purchase.refunded'] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** Asked before a sale: without webhooks its transaction has no statement for them. */
export const HAS_WEBHOOKS = 'EXISTS (SELECT FROM webhooks WHERE ended_at IS NULL)';

// Holds no buyer, so that an erasure need not look here. A reference may name the buyer: it is read when the message is sent.
const announcement = (event: WebhookEvent, status: string) =>
  statement(
    `announce_${status}`,
    `INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data)
     SELECT gen_random_uuid(), w.id, '${event}', p.id, json_build_object(
       'id', p.id, 'game_ids', g.ids, 'status', '${status}', 'amount', p.amount, 'currency', p.currency,
       'source', p.source, 'created_at', to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
     FROM purchases p
     CROSS JOIN LATERAL (SELECT array_agg(game_id ORDER BY game_id) AS ids FROM purchase_games WHERE purchase_id = p.id) g
     JOIN webhooks w ON w.ended_at IS NULL AND '${event}' = ANY (w.events)
       AND (w.game_id IS NULL OR w.game_id = ANY (g.ids))
     WHERE p.id = $1 AND p.status <> 'refunded'`,
  );

const SALE = announcement('purchase.completed', 'complete');
const REFUND = announcement('purchase.refunded', 'refunded');

/** The last statement of a sale's transaction. */
export const announceSale = (purchase_id: number): BoundStatement => bind(SALE, [purchase_id]);

/** Runs before the purchase is marked as refunded, so that a repeated refund announces nothing. */
export const announceRefund = (purchase_id: number): BoundStatement => bind(REFUND, [purchase_id]);
