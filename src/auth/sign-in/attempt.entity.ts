import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** Failed attempts from an IP address, for an account, or of a user who enters device codes. */
@PersonalData({
  type: 'attempts',
  where: `t.subject IN (SELECT sha256(convert_to(guess || $user_id::bigint, 'UTF8'))
      FROM unnest('{"user ","device code by ","download key by "}'::text[]) AS guess)`,
})
@StoredColumns({
  columns: ['subject', 'failures', 'blocked_until', 'expires_at'],
  why: 'slow down failed attempts; the subject is a hash of an account or network',
  for_how_long: 'a day',
  after_erasure: 'those of the account and its email addresses are erased',
})
@Entity('attempts')
@Check('attempts_subject_check', 'octet_length(subject) = 32')
@Index('attempts_expires_at_idx', ['expires_at'])
export class Attempt {
  @PrimaryColumn('bytea')
  subject: Buffer;

  @Column('integer')
  failures: number;

  @TimestampColumn()
  blocked_until: string;

  @TimestampColumn()
  expires_at: string;
}
