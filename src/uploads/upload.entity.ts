import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

export const UPLOAD_TYPES = [
  'default',
  'html',
  'flash',
  'java',
  'unity',
  'soundtrack',
  'book',
  'video',
  'documentation',
  'mod',
  'audio_assets',
  'graphical_assets',
  'sourcecode',
  'other',
] as const;
export const PLATFORMS = ['windows', 'linux', 'osx', 'android'] as const;
export const UPLOAD_TRAITS = ['p_windows', 'p_linux', 'p_osx', 'p_android', 'demo'] as const;

/** A file name that every operating system can store. */
export const MAX_FILENAME_CHARACTERS = 255;
export const FILENAME = /^(?!\.{1,2}$)[^\p{Cc}/\\]+$/u;
export const MAX_DISPLAY_NAME = 500;

const quotedList = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');

/**
 * A file that players download. Exactly one of `size` (with the file's key or URL), `channel_name` and
 * `external_url` is set.
 */
@StoredColumns({
  columns: [
    'id',
    'game_id',
    'filename',
    'display_name',
    'type',
    'traits',
    'position',
    'channel_name',
    'file_key',
    'file_url',
    'size',
    'md5_hash',
    'external_url',
    'hidden',
    'created_at',
    'updated_at',
  ],
  why: 'the files of a game',
  for_how_long: 'as long as the game',
})
@Entity('uploads')
@Check('uploads_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('uploads_filename_check', 'length(filename) BETWEEN 1 AND 255')
@Check('uploads_type_check', `type IN (${quotedList(UPLOAD_TYPES)})`)
@Check('uploads_traits_check', `traits <@ ARRAY[${quotedList(UPLOAD_TRAITS)}]`)
@Check('uploads_source_check', 'num_nonnulls(size, channel_name, external_url) = 1')
@Check('uploads_file_check', 'num_nonnulls(file_key, file_url) = num_nonnulls(size)')
@Check('uploads_size_check', 'size >= 0')
@Index('uploads_game_id_idx', ['game_id', 'position', 'id'])
@Index('uploads_other_key_idx', { synchronize: false })
@Index('uploads_channel_idx', ['game_id', 'channel_name'], { where: 'channel_name IS NOT NULL' })
export class Upload {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  game_id: number;

  @Column('text')
  filename: string;

  @Column('text', { nullable: true })
  display_name: string | null;

  @Column('text', { default: 'default' })
  type: (typeof UPLOAD_TYPES)[number];

  @Column('text', { array: true, default: '{}' })
  traits: (typeof UPLOAD_TRAITS)[number][];

  @Column('bigint', { default: 0 })
  position: number;

  /** The channel whose newest completed build with a file is downloaded. */
  @Column('text', { nullable: true })
  channel_name: string | null;

  /** The location of the file: a key in the bucket or folder, or an https URL. */
  @Column('text', { nullable: true })
  file_key: string | null;

  @Column('text', { nullable: true })
  file_url: string | null;

  /** The size in bytes. */
  @Column('bigint', { nullable: true })
  size: number | null;

  @Column('text', { nullable: true })
  md5_hash: string | null;

  @Column('text', { nullable: true })
  external_url: string | null;

  /** Whether only editors of the game see the upload. */
  @Column('boolean', { default: false })
  hidden: boolean;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ default: () => 'now()' })
  updated_at: string;

  @ManyToOne(() => Game)
  game?: Relation<Game>;
}
