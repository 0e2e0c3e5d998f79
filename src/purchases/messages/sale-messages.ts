import { canEdit } from '../../games/visibility';
import { announceToEditors } from '../../games/game-events';
import type { EventType } from '../../events/event-type';
import { bind, type BoundStatement, read } from '../../platform/database/statement';
import { cameWithSale } from '../ownership/sold-keys';
import type { KeyPages } from '../../platform/server/key-pages';

interface FieldsAtSend {
  /** Null for a seller's webhook. */
  email: string | null;
  /** The reference may contain the buyer's name or email address. */
  reference: string | null;
  download_keys: { id: number; game_id: number; key: string }[];
}

/** A seller gets the keys of the games that they can edit, without the buyer. */
const FIELDS_AT_SEND = read<FieldsAtSend>(
  'sale_message_fields',
  `SELECT CASE WHEN $webhook_user_id::bigint IS NULL THEN p.email END AS email,
     (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
     (SELECT coalesce(json_agg(json_build_object('id', k.id, 'game_id', k.game_id, 'key', k.key) ORDER BY k.game_id, k.id), '[]')
      FROM download_keys k JOIN games g ON g.id = k.game_id
      WHERE k.purchase_id = p.id AND k.revoked_at IS NULL AND ${cameWithSale('k')} AND ($webhook_user_id IS NULL OR ${canEdit('g', '$webhook_user_id')})) AS download_keys
   FROM purchases p WHERE p.id = $subject_id`,
);

const withUrls = ({ email, ...fields }: FieldsAtSend, pages: KeyPages) => ({
  ...(email !== null && { email }),
  ...fields,
  download_keys: fields.download_keys.map((one) => ({ ...one, url: pages.url(one.key) })),
});

const PURCHASE_COMPLETED: EventType = {
  name: 'purchase.completed',
  title: 'Sale',
  sent_when: 'a sale is recorded with `POST /operator/purchases` or `gamewharf sell`',
  audience: 'editors',
  subject_type: 'purchase',
  readAtSend: FIELDS_AT_SEND,
  withUrls: (fields, pages) => withUrls(fields as FieldsAtSend, pages),
};

const PURCHASE_REFUNDED: EventType = {
  ...PURCHASE_COMPLETED,
  name: 'purchase.refunded',
  title: 'Refund of sale',
  sent_when:
    'a sale is refunded with `POST /operator/purchases/ID/refund` or `gamewharf refund`; `status` is then `refunded`',
};

export const PURCHASE_EVENTS = [PURCHASE_COMPLETED, PURCHASE_REFUNDED];

// The stored message doesn't contain the buyer, so an erasure doesn't have to read it.
const announcement = (type: EventType, status: string, purchase_id: string) =>
  announceToEditors(type, {
    from: 'purchases p',
    where: `p.id = ${purchase_id} AND p.status <> 'refunded'`,
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

const ANNOUNCE_REFUND = announcement(PURCHASE_REFUNDED, 'refunded', '$purchase_id');

/** `purchase_id`: SQL of the ID of the sale. */
export const announceSale = (purchase_id: string) =>
  announcement(PURCHASE_COMPLETED, 'complete', purchase_id);

/** Runs before the purchase is marked as refunded, so that a repeated refund sends nothing. */
export const announceRefund = (purchase_id: number): BoundStatement => bind(ANNOUNCE_REFUND, { purchase_id });
