import { Entity, Index, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

/** A download session that was counted, so that it is counted once across replicas. */
@StoredColumns({
  columns: ['uuid', 'counted_at'],
  why: 'count a download session once',
  for_how_long: 'a week',
})
@Entity('counted_downloads')
@Index('counted_downloads_counted_at_idx', ['counted_at'])
export class CountedDownload {
  @PrimaryColumn('uuid')
  uuid: string;

  @TimestampColumn({ default: () => 'now()' })
  counted_at: string;
}
