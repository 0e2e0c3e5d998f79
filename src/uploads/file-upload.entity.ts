import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { StoredColumns } from '../platform/database/personal-data';
import { TimestampColumn } from '../platform/database/timestamp.column';
import type { Upload } from './upload.entity';

export const FILE_UPLOAD_STATES = ['receiving', 'storing', 'stored', 'failed'] as const;

/** An unfinished upload expires after this time. */
export const FILE_UPLOAD_LIFETIME = `interval '24 hours'`;

/** A file that a seller uploads on a page, until it is listed as an upload. */
@StoredColumns({
  columns: [
    'id',
    'game_id',
    'filename',
    'size',
    'display_name',
    'traits',
    'hidden',
    'replaces',
    'channel_name',
    'user_version',
    'state',
    'error',
    'upload_id',
    'leased_until',
    'created_at',
  ],
  why: 'continue an upload that was interrupted',
  for_how_long: 'a day',
})
@Entity('file_uploads')
@Check('file_uploads_filename_check', 'length(filename) BETWEEN 1 AND 255')
@Check('file_uploads_size_check', 'size >= 0')
@Check('file_uploads_state_check', `state IN ('receiving', 'storing', 'stored', 'failed')`)
@Index('file_uploads_game_id_idx', ['game_id'])
@Index('file_uploads_created_at_idx', ['created_at'])
export class FileUpload {
  /** The ID of the upload session, which is deleted once the file is stored. */
  @PrimaryColumn('uuid')
  id: string;

  @Column('bigint')
  game_id: number;

  @Column('text')
  filename: string;

  /** The size in bytes, as the browser announced it. */
  @Column('bigint')
  size: number;

  @Column('text', { nullable: true })
  display_name: string | null;

  @Column('text', { array: true, default: '{}' })
  traits: Upload['traits'];

  @Column('boolean', { default: false })
  hidden: boolean;

  /** The upload whose file is replaced by this one. */
  @Column('bigint', { nullable: true })
  replaces: number | null;

  /** The channel of which the file is a new build. */
  @Column('text', { nullable: true })
  channel_name: string | null;

  @Column('text', { nullable: true })
  user_version: string | null;

  @Column('text', { default: 'receiving' })
  state: (typeof FILE_UPLOAD_STATES)[number];

  /** Why it failed, for the seller. */
  @Column('text', { nullable: true })
  error: string | null;

  /** The upload with the stored file. */
  @Column('bigint', { nullable: true })
  upload_id: number | null;

  /** End of the lease of the process that stores the file. */
  @TimestampColumn({ nullable: true })
  leased_until: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  game?: Relation<Game>;
}
