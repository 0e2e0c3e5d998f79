import { Column, Entity, OneToOne, PrimaryColumn, type Relation, JoinColumn } from 'typeorm';
import { StoredColumns } from '../platform/database/personal-data';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { Build } from './build.entity';

/** A pushed build to process. Deleted when the build is completed or has failed. */
@StoredColumns({
  columns: ['build_id', 'attempts', 'lease', 'leased_until', 'created_at'],
  why: 'process a pushed build once across replicas',
  for_how_long: 'until the build is completed or has failed',
})
@Entity('build_jobs')
export class BuildJob {
  @PrimaryColumn('bigint')
  build_id: number;

  @Column('integer', { default: 0 })
  attempts: number;

  /** The ID of the attempt that is running. */
  @Column('uuid', { nullable: true })
  lease: string | null;

  /** The time after which another process takes the job. */
  @TimestampColumn({ nullable: true })
  leased_until: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @OneToOne(() => Build, { onDelete: 'CASCADE' })
  @JoinColumn()
  build?: Relation<Build>;
}
