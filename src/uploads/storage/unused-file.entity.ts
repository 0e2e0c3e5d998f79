import { Entity, PrimaryColumn } from 'typeorm';
import { StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** A stored file to delete, unless a record uses it when it is due. Triggers record replaced and deleted ones. */
@StoredColumns({
  columns: ['file_key', 'due_at'],
  why: 'delete stored files that no record uses any more',
  for_how_long: 'until the file is deleted',
})
@Entity('unused_files')
export class UnusedFile {
  @PrimaryColumn('text')
  file_key: string;

  @TimestampColumn({ default: () => 'now()' })
  due_at: string;
}
