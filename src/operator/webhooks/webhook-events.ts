import { canEdit } from '../../games/visibility';

export const WEBHOOK_EVENTS = ['purchase.completed', 'purchase.refunded'] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** Not null, because the previous version, which may still be running, would notify the webhook of every sale of the store. */
export const ALL_OWN_GAMES = 0;

/** Checked before a sale: without webhooks its transaction has no statement for them. */
export const HAS_WEBHOOKS = 'EXISTS (SELECT FROM webhooks WHERE ended_at IS NULL)';

/**
 * Whether the webhook `w` is notified of a purchase, by its ID: one of the store by its game, one of a user only while the
 * user can edit the game.
 */
export const isSubscribed = (purchase: string) => `EXISTS (
  SELECT FROM purchase_games pg JOIN games g ON g.id = pg.game_id
  WHERE pg.purchase_id = ${purchase} AND (coalesce(w.game_id, ${ALL_OWN_GAMES}) = ${ALL_OWN_GAMES} OR g.id = w.game_id)
    AND (w.user_id IS NULL OR ${canEdit('g', 'w.user_id')}))`;
