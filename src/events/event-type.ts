import type { Statement } from '../platform/database/statement';
import type { KeyPages } from '../platform/server/key-pages';

/** A type of message that webhooks receive. A feature declares its own and lists them in its module. */
export interface EventType {
  /** A name such as `purchase.completed`. */
  name: string;
  /** The name on pages, which may precede the ID of the subject. */
  title: string;
  /** Ends the sentence "It is sent when ..." in the guide. */
  sent_when: string;
  /**
   * `editors`: webhooks of users, too, about the games that they can edit, and webhooks for all events. `operator`: only
   * the store's own webhooks that name the event.
   */
  audience: 'editors' | 'operator';
  /** The record that the message is about, such as `purchase`. */
  subject_type: string;
  /**
   * Reads fields of the subject `$subject_id` that must not be stored with the message, because an erasure wouldn't find them. They
   * are added to the data whenever the message is sent. `$webhook_user_id`: the user of the webhook; null: it is the
   * store's.
   */
  readAtSend?: Statement<object>;
  /** Adds URLs to what `readAtSend` returned. */
  withUrls?: (fields: object, pages: KeyPages) => object;
}

export interface Subject {
  subject_type: string;
  subject_id: number;
}
