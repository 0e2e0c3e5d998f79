import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../../games/game.entity';
import { StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** A file that is being uploaded in parts. */
@StoredColumns({
  columns: ['id', 'game_id', 'max_bytes', 'size', 'received', 'created_at', 'expires_at'],
  why: 'continue an upload that was interrupted',
  for_how_long: 'until the file is stored, at most a day',
})
@Entity('upload_sessions')
@Check('upload_sessions_received_check', 'received BETWEEN 0 AND coalesce(size, max_bytes)')
@Index('upload_sessions_game_id_idx', ['game_id'])
@Index('upload_sessions_expires_at_idx', ['expires_at'])
export class UploadSession {
  @PrimaryColumn('uuid')
  id: string;

  /** Null: the game was deleted. */
  @Column('bigint', { nullable: true })
  game_id: number | null;

  @Column('bigint')
  max_bytes: number;

  /** The size in bytes; null until the client sends it. */
  @Column('bigint', { nullable: true })
  size: number | null;

  /** The bytes from the start of the file that are stored. */
  @Column('bigint', { default: 0 })
  received: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn()
  expires_at: string;

  @ManyToOne(() => Game, { onDelete: 'SET NULL' })
  game?: Relation<Game>;
}
