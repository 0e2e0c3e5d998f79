import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import type { Request } from 'express';
import { BackgroundWriter } from '../../platform/database/background-writer';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';

// Writes the use of a key at most once a minute. SKIP LOCKED skips a key that another replica is writing.
const WRITE_USES = statement(
  'write_api_key_uses',
  `UPDATE api_keys k SET last_used_at = now(), last_used_from = used.network
   FROM unnest($ids::bigint[], $networks::cidr[]) used (id, network)
   WHERE k.id = used.id AND k.id IN (
     SELECT id FROM api_keys
     WHERE id = ANY ($ids) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
     FOR NO KEY UPDATE SKIP LOCKED)`,
);

// Counts are grouped, because a key that was verified twice is in the batch twice, and ordered, because
// replicas update the same keys. SKIP LOCKED skips a key that is being deleted with its counts.
const COUNT_REQUESTS = statement(
  'count_api_key_requests',
  `WITH k AS MATERIALIZED (SELECT id FROM api_keys WHERE id = ANY ($ids) FOR KEY SHARE SKIP LOCKED)
   INSERT INTO api_key_requests AS stored (api_key_id, day, requests)
   SELECT k.id, (now() AT TIME ZONE 'UTC')::date, sum(used.requests)
   FROM unnest($ids::bigint[], $counts::bigint[]) used (id, requests) JOIN k USING (id) GROUP BY k.id ORDER BY k.id
   ON CONFLICT (api_key_id, day) DO UPDATE SET requests = stored.requests + excluded.requests`,
);

/** The requests of a key that aren't counted in the database yet. */
export interface ApiKeyUse {
  api_key_id: number;
  requests: number;
  /** The network of the first of these requests; null if it is unknown. */
  network: string | null;
}

@Injectable()
export class ApiKeyUses implements BeforeApplicationShutdown {
  private readonly log = new Logger(ApiKeyUses.name);
  private readonly writer = new BackgroundWriter<ApiKeyUse>({
    intervalMs: 5000,
    batchSize: 1000,
    write: (batch) => this.write(batch),
    failed: ({ message }) => this.log.warn(`Uses of API keys were not written: ${message}`),
  });

  constructor(private readonly database: Database) {}

  add(use: ApiKeyUse, req?: Request): void {
    if (use.requests++ > 0) return;
    use.network = req?.inFlight.client.networkPrefix('site') || null;
    if (!this.writer.add(use)) use.requests = 0;
  }

  /** Writes all pending uses. */
  flush(): Promise<void> {
    return this.writer.flush();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }

  private async write(batch: ApiKeyUse[]): Promise<void> {
    const ids = batch.map(({ api_key_id }) => api_key_id);
    const counts = batch.map(({ requests }) => requests);
    for (const use of batch) use.requests = 0;
    await this.database.rows(WRITE_USES, { ids, networks: batch.map(({ network }) => network) });
    await this.database.rows(COUNT_REQUESTS, { ids, counts });
  }
}
