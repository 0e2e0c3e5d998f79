import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

/** An event that changed who may do what. Outlives its user. A trigger rejects updates and deletes. */
@PersonalData({ type: 'audit_event' })
@StoredColumns(
  {
    columns: ['details'],
    why: 'details of an event; for a failed sign-in, the network; for a new webhook, its host',
    for_how_long: 'until its partition is dropped',
    after_erasure: 'the network and the host are erased',
  },
  {
    columns: ['id', 'at', 'event', 'user_id', 'request_id'],
    why: 'prove who changed what',
    for_how_long: 'until its partition is dropped',
    after_erasure: 'stay: the ID no longer identifies a person',
  },
)
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
