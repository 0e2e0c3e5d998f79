import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../platform/database/timestamp.column';

/** An event that changed who may do what; kept when its user is deleted. A trigger rejects updates and deletes. */
@Entity('audit_events')
@Check('audit_events_id_check', `id >= 1 AND id <= '9007199254740991'::bigint`)
@Index('audit_events_user_id_id_idx', ['user_id', 'id'])
export class AuditEventRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @TimestampColumn({ default: () => 'now()' })
  at: string;

  @Column('text')
  event: string;

  @Column('bigint', { nullable: true })
  user_id: number | null;

  @Column('text', { nullable: true })
  request_id: string | null;

  @Column('jsonb', { default: {} })
  details: object;
}
