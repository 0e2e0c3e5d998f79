import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The answer of a write that was sent with an Idempotency-Key, kept for a day. */
@Entity('idempotency_keys')
@Index('idempotency_keys_created_at_idx', ['created_at'])
export class IdempotencyKey {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  credential: string;

  @PrimaryColumn('bytea', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key_hash: Buffer;

  /** Whose the credential was; null: written by a version that did not ask. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** Of the route and the parameters. */
  @Column('bytea')
  fingerprint: Buffer;

  @Column('text', { nullable: true })
  answer: string | null;

  @Column('timestamptz', { default: () => 'now()' })
  created_at: string;
}
