import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from './user.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({ type: 'session' })
@StoredColumns({
  columns: ['token_hash', 'user_id', 'created_at', 'seen_at', 'expires_at', 'notice', 'id_token', 'network'],
  why: 'keep a browser signed in; show one message; sign out at the identity provider; show the user where',
  for_how_long: '`SESSION_DAYS`, less when idle',
  after_erasure: 'erased',
})
@Entity('sessions')
@Check('sessions_token_hash_check', 'octet_length(token_hash) = 32')
@Index('sessions_user_id_idx', ['user_id'])
@Index('sessions_expires_at_idx', ['expires_at'])
@Index('sessions_seen_at_idx', ['seen_at'])
export class Session {
  @PrimaryColumn('bytea')
  token_hash: Buffer;

  @Column('bigint')
  user_id: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ default: () => 'now()' })
  seen_at: string;

  @TimestampColumn()
  expires_at: string;

  /** Shown once by the next page; encrypted with the session's token, which is not stored. */
  @Column('bytea', { nullable: true })
  notice: Buffer | null;

  /** The token of a sign-in with an identity provider; encrypted like the notice. */
  @Column('bytea', { nullable: true })
  id_token: Buffer | null;

  /** The /24 of the IPv4 address that signed in, or the /48 of the IPv6 address. Null: before 0.2. */
  @Column('text', { nullable: true })
  network: string | null;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
