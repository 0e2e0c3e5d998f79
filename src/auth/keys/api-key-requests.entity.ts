import { Column, Entity, Index, ManyToOne, PrimaryColumn } from 'typeorm';
import { ApiKey } from './api-key.entity';

/** Days for which requests of API keys are counted. */
export const COUNTED_DAYS = 30;

/** The number of requests of an API key on a day in UTC. */
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
