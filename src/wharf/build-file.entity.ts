import { Check, Column, Entity, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import { StoredColumns } from '../platform/database/personal-data';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { Build } from './build.entity';

export const PUSHED_FILE_TYPES = ['patch', 'signature'] as const;
export const BUILD_FILE_STATES = ['created', 'uploading', 'uploaded'] as const;

/** The patch or signature of a build. Its archive is in columns of the build. */
@StoredColumns({
  columns: [
    'id',
    'build_id',
    'type',
    'sub_type',
    'state',
    'size',
    'file_key',
    'session_id',
    'created_at',
    'updated_at',
  ],
  why: 'the files from which launchers update a game',
  for_how_long: 'as long as the build',
})
@Entity('build_files')
@Check('build_files_type_check', `type IN ('patch', 'signature')`)
@Check('build_files_sub_type_check', `sub_type = 'default'`)
@Check('build_files_state_check', `state IN ('created', 'uploaded')`)
@Check('build_files_size_check', 'size >= 0')
@Check('build_files_file_key_check', 'file_key IS NULL OR size IS NOT NULL')
@Unique('build_files_type_key', ['build_id', 'type', 'sub_type'])
export class BuildFile {
  /** Comes from the sequence of builds, because the archive of a build has the build's ID: `nextval('builds_id_seq')`. */
  @PrimaryColumn('bigint')
  id: number;

  @Column('bigint')
  build_id: number;

  @Column('text')
  type: (typeof PUSHED_FILE_TYPES)[number];

  @Column('text', { default: 'default' })
  sub_type: 'default';

  /** `uploaded`: the upload tool has confirmed its size, or it was computed. */
  @Column('text', { default: 'created' })
  state: Exclude<(typeof BUILD_FILE_STATES)[number], 'uploading'>;

  /** The size in bytes. */
  @Column('bigint', { nullable: true })
  size: number | null;

  /** The key of the file in the storage; null until the build is completed. */
  @Column('text', { nullable: true })
  file_key: string | null;

  /** The session with its bytes until the build is completed. */
  @Column('uuid', { nullable: true })
  session_id: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ default: () => 'now()' })
  updated_at: string;

  @ManyToOne(() => Build, { onDelete: 'CASCADE' })
  build?: Relation<Build>;
}
