import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../accounts/user.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** A person's account at an identity provider, which signs in one user. */
@PersonalData({ type: 'identity' })
@StoredColumns({
  columns: ['id', 'issuer', 'subject', 'user_id', 'label', 'created_at', 'used_at'],
  why: 'sign in with an identity provider',
  for_how_long: 'until it is disconnected',
  after_erasure: 'erased',
})
@Entity('identities')
@Check('identities_subject_check', 'char_length(subject) BETWEEN 1 AND 255')
@Check('identities_label_check', 'char_length(label) <= 200')
@Index('identities_issuer_subject_key', ['issuer', 'subject'], { unique: true })
@Index('identities_user_id_idx', ['user_id'])
export class Identity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'BY DEFAULT',
    primaryKeyConstraintName: 'identities_pkey',
  })
  id: number;

  @Column('text')
  issuer: string;

  /** Unique at its issuer, and never reassigned to another person, unlike an email address. */
  @Column('text')
  subject: string;

  @Column('bigint')
  user_id: number;

  /** The person's name at the provider, which tells several identities apart. */
  @Column('text', { nullable: true })
  label: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ nullable: true })
  used_at: string | null;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
