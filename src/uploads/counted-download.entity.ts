import { Entity, Index, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../platform/database/timestamp.column';

/** A download session that was counted, so that it is counted once across replicas. */
@Entity('counted_downloads')
@Index('counted_downloads_counted_at_idx', ['counted_at'])
export class CountedDownload {
  @PrimaryColumn('uuid')
  uuid: string;

  @TimestampColumn({ default: () => 'now()' })
  counted_at: string;
}
