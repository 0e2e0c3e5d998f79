import { Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { StoredColumns } from '../platform/database/personal-data';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { Build } from './build.entity';

/** What the upload tool or the service reported about a build. */
@StoredColumns({
  columns: ['id', 'build_id', 'type', 'message', 'data', 'created_at'],
  why: 'show what happened to a pushed build',
  for_how_long:
    'as long as the build; of failed builds, those of the newest 10 of a game and the reason of each failure',
})
@Entity('build_events')
@Index('build_events_build_id_idx', ['build_id', 'id'])
export class BuildEvent {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  build_id: number;

  @Column('text')
  type: string;

  @Column('text')
  message: string;

  /** JSON, stored as it is. */
  @Column('text', { nullable: true })
  data: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @ManyToOne(() => Build, { onDelete: 'CASCADE' })
  build?: Relation<Build>;
}
