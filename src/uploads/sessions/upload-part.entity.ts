import { Check, Column, Entity, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { StoredColumns } from '../../platform/database/personal-data';
import { UploadSession } from './upload-session.entity';

/** A part of a file that is being uploaded: an object of the storage. */
@StoredColumns({
  columns: ['session_id', 'file_key', 'start', 'size'],
  why: 'the parts of an unfinished upload',
  for_how_long: 'until the file is stored, at most a day',
})
@Entity('upload_parts')
@Check('upload_parts_size_check', 'size > 0')
export class UploadPart {
  @PrimaryColumn('uuid')
  session_id: string;

  @PrimaryColumn('text')
  file_key: string;

  /** The position of its first byte in the file. */
  @Column('bigint')
  start: number;

  /** The bytes of the object that belong to the file. Null: it is being written, or was abandoned. */
  @Column('bigint', { nullable: true })
  size: number | null;

  @ManyToOne(() => UploadSession)
  session?: Relation<UploadSession>;
}
