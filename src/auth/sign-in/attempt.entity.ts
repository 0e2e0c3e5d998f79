import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** Failed attempts from an IP address, for an account, or of a user who enters device codes. */
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
