import {
  Check,
  Column,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryGeneratedColumn,
  type Relation,
} from 'typeorm';
import { Game } from '../games/game.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

export const BUILD_STATES = ['started', 'processing', 'completed', 'failed'] as const;

/** SQL condition: the build `b` may be the head of its channel, and players see it. */
export const isPublished = (b: string) => `${b}.state = 'completed' AND NOT ${b}.hidden`;

/** A channel is the set of builds with its name; the newest has the highest ID. */
@StoredColumns({
  columns: [
    'id',
    'game_id',
    'channel_name',
    'user_version',
    'state',
    'created_at',
    'updated_at',
    'file_key',
    'file_url',
    'size',
    'md5_hash',
    'version',
    'hidden',
    'parent_build_id',
    'source',
    'metadata',
    'launch_analysis',
    'error',
    'expires_at',
  ],
  why: 'the versions of a game',
  for_how_long: 'as long as the game',
})
@Entity('builds')
@Check('builds_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('builds_channel_name_check', 'length(channel_name) BETWEEN 1 AND 200')
@Check('builds_user_version_check', 'length(user_version) BETWEEN 1 AND 200')
@Check('builds_state_check', `state IN ('started', 'processing', 'completed', 'failed')`)
@Check('builds_file_check', 'num_nonnulls(file_key, file_url) = num_nonnulls(size)')
@Check('builds_size_check', 'size >= 0')
@Index('builds_head_idx', { synchronize: false })
@Index('builds_head_file_idx', { synchronize: false })
@Index('builds_other_key_idx', { synchronize: false })
@Index('builds_channel_idx', ['game_id', 'channel_name', 'id'])
@Index('builds_game_id_idx', ['game_id', 'id'])
@Index('builds_parent_build_id_idx', ['parent_build_id'], { where: 'parent_build_id IS NOT NULL' })
@Index('builds_expires_at_idx', ['expires_at'], { where: 'expires_at IS NOT NULL' })
export class Build {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  game_id: number;

  @Column('text')
  channel_name: string;

  @Column('text', { nullable: true })
  user_version: string | null;

  @Column('text', { default: 'completed' })
  state: (typeof BUILD_STATES)[number];

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** Null: unchanged since it was created. */
  @TimestampColumn({ nullable: true })
  updated_at: string | null;

  /** The location of its file: a key in the bucket or folder, or an https URL. */
  @Column('text', { nullable: true })
  file_key: string | null;

  @Column('text', { nullable: true })
  file_url: string | null;

  /** The size in bytes. */
  @Column('bigint', { nullable: true })
  size: number | null;

  @Column('text', { nullable: true })
  md5_hash: string | null;

  /** The number of the build in its channel, from 1, set by a trigger. */
  @Column('integer', { default: 0 })
  version: number;

  /** Completed, but not the head of the channel until an editor publishes it. */
  @Column('boolean', { default: false })
  hidden: boolean;

  /** The build to which its patch applies. Null: the patch contains everything, or the build has none. */
  @Column('bigint', { nullable: true })
  parent_build_id: number | null;

  /** The program that pushed it, in its own words. */
  @Column('text', { nullable: true })
  source: string | null;

  /** JSON of the upload tool, stored as it is. */
  @Column('text', { nullable: true })
  metadata: string | null;

  @Column('text', { nullable: true })
  launch_analysis: string | null;

  /** Why it failed, for the user of the upload tool. */
  @Column('text', { nullable: true })
  error: string | null;

  /** Deadline of the push. Null: completed, failed, or not pushed. */
  @TimestampColumn({ nullable: true })
  expires_at: string | null;

  @ManyToOne(() => Game)
  game?: Relation<Game>;

  @ManyToOne(() => Build)
  @JoinColumn({ name: 'parent_build_id' })
  parent?: Relation<Build>;
}
