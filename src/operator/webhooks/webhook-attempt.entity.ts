import { Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { Webhook } from './webhook.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** An attempt to deliver a message to a user's webhook. The newest ones of each webhook are kept. */
@PersonalData({
  type: 'webhook_attempt',
  where: 't.webhook_id IN (SELECT id FROM webhooks WHERE user_id = $user_id)',
})
@StoredColumns(
  {
    columns: ['response'],
    why: 'show a seller what their receiver responded',
    for_how_long: 'the last 20 of a webhook',
    after_erasure: "empty for the person's purchases, because a receiver may repeat the reference",
  },
  {
    columns: [
      'id',
      'webhook_id',
      'message_id',
      'event',
      'subject_type',
      'subject_id',
      'data',
      'happened_at',
      'attempted_at',
      'outcome',
      'duration_ms',
    ],
    why: 'the same, without the buyer',
    for_how_long: 'the last 20 of a webhook',
    after_erasure: "those of the person's webhooks are erased",
  },
)
@Entity('webhook_attempts')
@Index('webhook_attempts_webhook_id_idx', ['webhook_id', 'id'])
@Index('webhook_attempts_subject_idx', ['subject_id', 'subject_type'])
export class WebhookAttempt {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  webhook_id: number;

  @ManyToOne(() => Webhook, { onDelete: 'CASCADE' })
  webhook: Webhook;

  @Column('text')
  message_id: string;

  @Column('text')
  event: string;

  /** Null: a test. */
  @Column('text', { nullable: true })
  subject_type: string | null;

  @Column('bigint', { nullable: true })
  subject_id: number | null;

  @Column('json')
  data: object;

  /** The time of the event, which is the timestamp of the message. */
  @TimestampColumn()
  happened_at: string;

  @TimestampColumn({ default: () => 'now()' })
  attempted_at: string;

  /** The status of the response, or why there was none. */
  @Column('text')
  outcome: string;

  @Column('integer')
  duration_ms: number;

  /**
   * The first characters of the response. Cleared when the buyer is erased, because a receiver may repeat the
   * reference.
   */
  @Column('text', { nullable: true })
  response: string | null;
}
