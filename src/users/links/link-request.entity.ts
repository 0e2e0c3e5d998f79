import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../../auth/accounts/user.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

export type RequestedPurpose = 'set_password' | 'sign_up' | 'verify_email';

/**
 * A person's request for a link, which the store's mailer creates and sends. Each email address has one per
 * purpose.
 */
@PersonalData({
  type: 'link_request',
  columns: { password_hash: null, has_password: 't.password_hash IS NOT NULL' },
  erasure: 'delete',
})
@StoredColumns({
  columns: [
    'id',
    'purpose',
    'user_id',
    'email',
    'username',
    'password_hash',
    'browser_hash',
    'created_at',
    'used_at',
  ],
  why: 'send a link that a person requested; create the account of a sign-up',
  for_how_long: 'a day',
  after_erasure: 'those of the account and its email addresses are erased',
})
@Entity('link_requests')
@Check('link_requests_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('link_requests_purpose_check', `purpose IN ('set_password', 'sign_up', 'verify_email')`)
@Index('link_requests_email_purpose_key', ['email', 'purpose'], { unique: true })
@Index('link_requests_user_id_idx', ['user_id'])
@Index('link_requests_created_at_idx', ['created_at'])
export class LinkRequest {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  purpose: RequestedPurpose;

  /** Null: a sign-up. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** The address in lowercase. */
  @Column('text')
  email: string;

  /** This column and the next two are set for sign-ups only. */
  @Column('text', { nullable: true })
  username: string | null;

  @Column('text', { nullable: true })
  password_hash: string | null;

  /** The hash of the cookie of the browser that signed up. */
  @Column('bytea', { nullable: true })
  browser_hash: Buffer | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** Time at which the mailer created the link. */
  @TimestampColumn({ nullable: true })
  used_at: string | null;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
