import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** A URL that is notified of events. */
@PersonalData({ type: 'webhook' })
@StoredColumns(
  {
    columns: ['user_id', 'url', 'secret'],
    why: "notify a seller's systems of sales",
    for_how_long: 'until its user deletes it',
    after_erasure: 'those of the person are erased',
  },
  {
    columns: ['id', 'events', 'game_id', 'created_at', 'last_at', 'last_outcome', 'paused_until', 'ended_at'],
    why: "the same; the store's own have no user",
    for_how_long: 'until it is deleted',
    after_erasure: 'those of the person are erased',
  },
)
@Entity('webhooks')
@Check('webhooks_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('webhooks_url_check', 'length(url) <= 500')
@Check('webhooks_events_check', 'cardinality(events) > 0')
export class Webhook {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  url: string;

  @Column('text', { array: true })
  events: string[];

  /** Null: the store's own. */
  @Index('webhooks_user_id_idx')
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** Null: all games of the store. ALL_OWN_GAMES: all games that the user can edit. */
  @Column('bigint', { nullable: true })
  game_id: number | null;

  /** Sealed under the pepper. */
  @Column('bytea')
  secret: Buffer;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** The time of the last attempt, and its result: the status of the response, or the reason why there was none. */
  @TimestampColumn({ nullable: true })
  last_at: string | null;

  @Column('text', { nullable: true })
  last_outcome: string | null;

  /** The receiver is failing: no delivery starts before this time. Null: the last delivery was successful. */
  @TimestampColumn({ nullable: true })
  paused_until: string | null;

  /** Time of the receiver's 410 Gone: nothing has been sent to it since. */
  @TimestampColumn({ nullable: true })
  ended_at: string | null;
}
