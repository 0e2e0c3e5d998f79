import { Column, Entity, Index, ManyToOne, PrimaryColumn } from 'typeorm';
import { Webhook } from './webhook.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { StoredColumns } from '../../platform/database/personal-data';

/** A pending message for a webhook. */
@StoredColumns({
  columns: [
    'id',
    'webhook_id',
    'event',
    'subject_type',
    'subject_id',
    'purchase_id',
    'data',
    'created_at',
    'due_at',
    'attempts',
  ],
  why: 'message about a sale, without the buyer',
  for_how_long: 'until it is delivered, usually three days at most',
})
@Entity('webhook_deliveries')
@Index('webhook_deliveries_due_idx', ['webhook_id', 'due_at'])
@Index('webhook_deliveries_age_idx', ['webhook_id', 'created_at'])
@Index('webhook_deliveries_subject_idx', ['subject_id', 'subject_type'])
export class WebhookDelivery {
  @PrimaryColumn('uuid')
  id: string;

  @Column('bigint')
  webhook_id: number;

  @ManyToOne(() => Webhook, { onDelete: 'CASCADE' })
  webhook: Webhook;

  @Column('text')
  event: string;

  /** What the message is about, such as a purchase. */
  @Column('text', { nullable: true })
  subject_type: string;

  @Column('bigint', { nullable: true })
  subject_id: number;

  /** The subject for replicas of version 0.1.0, which may still be running. Copied by a trigger. */
  @Column('bigint', { nullable: true })
  purchase_id: number | null;

  /** The subject as it was at the event. */
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
