import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

/** The response of a write with an Idempotency-Key, retained for a day. */
@StoredColumns({
  columns: ['credential', 'key_hash', 'user_id', 'fingerprint', 'answer', 'created_at'],
  why: 'return the first response to a retry',
  for_how_long: 'a day',
  after_erasure:
    "responses to the person or about the person are erased; responses of sales don't contain the buyer, and responses of created keys don't contain the label",
})
@Entity('idempotency_keys')
@Index('idempotency_keys_created_at_idx', ['created_at'])
export class IdempotencyKey {
  @PrimaryColumn('text')
  credential: string;

  @PrimaryColumn('bytea')
  key_hash: Buffer;

  /** The user of the credential; null: written by an older version. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** A hash of the route and the parameters. */
  @Column('bytea')
  fingerprint: Buffer;

  // Replicas of 0.1 read the column by its name.
  @Column('text', { name: 'answer', nullable: true })
  response: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;
}
