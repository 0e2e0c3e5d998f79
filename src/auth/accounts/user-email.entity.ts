import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from './user.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** An email address in lowercase. Several accounts can enter it, but only one can verify it. */
@PersonalData({ type: 'user_email' })
@StoredColumns({
  columns: ['user_id', 'email', 'verified', 'is_primary'],
  why: 'find what was bought with an email address; send links to the primary one',
  for_how_long: 'as long as the account',
  after_erasure: 'erased',
})
@Entity('user_emails')
@Check('user_emails_email_check', `email <> '' AND email = lower_ascii(email)`)
@Index('user_emails_verified_key', { synchronize: false })
@Index('user_emails_primary_key', ['user_id'], { unique: true, where: 'is_primary' })
export class UserEmail {
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('text')
  email: string;

  @Column('boolean', { default: false })
  verified: boolean;

  /** Only a verified email address can be primary. */
  @Column('boolean', { default: false })
  is_primary: boolean;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
