import { announceToEditors } from '../../games/game-events';
import type { EventType } from '../../events/event-type';
import { bind, type BoundStatement, read } from '../../platform/database/statement';

// A reference may contain the buyer.
const REFERENCE = read<{ reference: string | null }>(
  'message_reference',
  'SELECT (SELECT reference FROM purchase_references WHERE purchase_id = $1) AS reference',
);

const PURCHASE_COMPLETED: EventType = {
  name: 'purchase.completed',
  title: 'Sale',
  sent_when: 'a sale is recorded with `POST /operator/purchases` or `gamewharf sell`',
  audience: 'editors',
  subject_type: 'purchase',
  readAtSend: REFERENCE,
};

const PURCHASE_REFUNDED: EventType = {
  ...PURCHASE_COMPLETED,
  name: 'purchase.refunded',
  title: 'Refund of sale',
  sent_when:
    'a sale is refunded with `POST /operator/purchases/ID/refund` or `gamewharf refund`; `status` is then `refunded`',
};

export const PURCHASE_EVENTS = [PURCHASE_COMPLETED, PURCHASE_REFUNDED];

// Contains no buyer, so that an erasure needn't read it.
const announcement = (type: EventType, status: string) =>
  announceToEditors(type, {
    from: 'purchases p',
    where: `p.id = $1 AND p.status <> 'refunded'`,
    subject_id: 'p.id',
    game_ids: 'ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id)',
    fields: {
      status: `'${status}'`,
      amount: 'p.amount',
      currency: 'p.currency',
      source: 'p.source',
      created_at: `to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
    },
  });

const SALE = announcement(PURCHASE_COMPLETED, 'complete');
const REFUND = announcement(PURCHASE_REFUNDED, 'refunded');

/** The last statement of a sale's transaction. */
export const announceSale = (purchase_id: number): BoundStatement => bind(SALE, [purchase_id]);

/** Runs before the purchase is marked as refunded, so that a repeated refund sends nothing. */
export const announceRefund = (purchase_id: number): BoundStatement => bind(REFUND, [purchase_id]);
