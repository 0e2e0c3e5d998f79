import { Column, Entity, Index, ManyToOne, PrimaryColumn } from 'typeorm';
import { ApiKey } from './api-key.entity';
import { StoredColumns } from '../../platform/database/personal-data';

/** Days for which requests of API keys are counted. */
export const COUNTED_DAYS = 30;

/** The number of requests of an API key on a day in UTC. */
@StoredColumns({
  columns: ['api_key_id', 'day', 'requests'],
  why: 'show the owner how much a key is used',
  for_how_long: '30 days',
  after_erasure: 'erased',
})
@Entity('api_key_requests')
export class ApiKeyRequests {
  @PrimaryColumn('bigint')
  api_key_id: number;

  @Index('api_key_requests_day_idx')
  @PrimaryColumn('date')
  day: string;

  @ManyToOne(() => ApiKey, { onDelete: 'CASCADE' })
  api_key: ApiKey;

  @Column('bigint')
  requests: number;
}
