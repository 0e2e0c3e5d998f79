import { Column, Entity, Index, ManyToOne, PrimaryColumn } from 'typeorm';
import type { WebhookEvent } from './webhook-events';
import { Webhook } from './webhook.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** A pending message for a webhook. */
@Entity('webhook_deliveries')
@Index('webhook_deliveries_due_idx', ['webhook_id', 'due_at'])
@Index('webhook_deliveries_age_idx', ['webhook_id', 'created_at'])
export class WebhookDelivery {
  @PrimaryColumn('uuid')
  id: string;

  @Column('bigint')
  webhook_id: number;

  @ManyToOne(() => Webhook, { onDelete: 'CASCADE' })
  webhook: Webhook;

  @Column('text')
  event: WebhookEvent;

  @Index('webhook_deliveries_purchase_id_idx')
  @Column('bigint')
  purchase_id: number;

  /** The purchase as it was at the event. */
  @Column('json')
  data: object;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** The time of the next attempt. An attempt first moves it to the end of its lease. */
  @TimestampColumn({ default: () => 'now()' })
  due_at: string;

  @Column('integer', { default: 0 })
  attempts: number;
}
