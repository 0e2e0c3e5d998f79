import { Check, Column, Entity, PrimaryGeneratedColumn } from 'typeorm';
import type { WebhookEvent } from './announcements';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** An address that is told of sales. */
@Entity('webhooks')
@Check('webhooks_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('webhooks_url_check', 'length(url) <= 500')
@Check(
  'webhooks_events_check',
  "cardinality(events) > 0 AND events <@ '{purchase.completed,purchase.refunded}'",
)
export class Webhook {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  url: string;

  @Column('text', { array: true })
  events: WebhookEvent[];

  /** Null: of all games. */
  @Column('bigint', { nullable: true })
  game_id: number | null;

  /** Sealed under the pepper. */
  @Column('bytea')
  secret: Buffer;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** When a delivery was last tried, and its outcome: the status of the answer, or why there was none. */
  @TimestampColumn({ nullable: true })
  last_at: string | null;

  @Column('text', { nullable: true })
  last_outcome: string | null;

  /** The receiver is failing: no delivery begins before this time. Null: the last delivery was successful. */
  @TimestampColumn({ nullable: true })
  paused_until: string | null;

  /** When the receiver answered 410 Gone: nothing is sent to it since. */
  @TimestampColumn({ nullable: true })
  ended_at: string | null;
}
