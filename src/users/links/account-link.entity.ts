import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../../auth/accounts/user.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

export const LINK_PURPOSES = ['set_password', 'sign_in', 'sign_up', 'verify_email'] as const;

/** A link that works once, within a day. Only the hash of its token is stored. */
@PersonalData({
  type: 'account_link',
  columns: { password_hash: null, has_password: 't.password_hash IS NOT NULL' },
})
@StoredColumns({
  columns: [
    'id',
    'token_hash',
    'purpose',
    'user_id',
    'email',
    'username',
    'password_hash',
    'browser_hash',
    'created_at',
  ],
  why: 'let a person set a password, sign in, sign up or verify an email address',
  for_how_long: 'until it is used, at most a day',
  after_erasure: 'those of the account and its email addresses are erased',
})
@Entity('account_links')
@Check('account_links_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('account_links_token_hash_check', 'octet_length(token_hash) = 32')
@Check('account_links_purpose_check', `purpose IN ('set_password', 'sign_in', 'sign_up', 'verify_email')`)
@Check('account_links_owner_check', 'user_id IS NOT NULL OR email IS NOT NULL')
@Index('account_links_token_hash_key', ['token_hash'], { unique: true })
@Index('account_links_owner_key', { synchronize: false })
@Index('account_links_user_id_idx', ['user_id'])
@Index('account_links_created_at_idx', ['created_at'])
export class AccountLink {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bytea')
  token_hash: Buffer;

  @Column('text')
  purpose: (typeof LINK_PURPOSES)[number];

  /** Null: a sign-up. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** The address of a sign-up, or the one to verify. */
  @Column('text', { nullable: true })
  email: string | null;

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

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
