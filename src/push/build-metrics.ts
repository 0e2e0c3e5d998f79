import { Injectable } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { Clock } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';
import { MetricsRegistry } from '../platform/observability/metrics-registry';

const OLDEST = statement<{ created_at: string }>(
  'oldest_build_job',
  'SELECT created_at FROM build_jobs ORDER BY created_at LIMIT 1',
);

/** `rejected`: because of the build's files or the owner's quota. `failed`: after the last attempt. */
type Result = 'completed' | 'rejected' | 'retried' | 'failed';
const RESULTS: Result[] = ['completed', 'rejected', 'retried', 'failed'];

/** Metrics of the processing of pushed builds. */
@Injectable()
export class BuildMetrics {
  private readonly results: Counter<'result'>;
  private readonly seconds: Counter<'result'>;
  private readonly bytes: Counter;
  private oldest = 0;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
  ) {
    this.results = metrics.counter(
      'gamewharf_builds_total',
      "Attempts to process a pushed build by result. rejected: because of the sender's files or quota",
      { result: RESULTS },
    );
    this.seconds = metrics.counter(
      'gamewharf_build_seconds_total',
      'Total duration of attempts to process a pushed build',
      { result: RESULTS },
    );
    this.bytes = metrics.counter(
      'gamewharf_build_bytes_total',
      'Bytes stored for completed pushed builds: archives, patches and signatures',
    );
    metrics.gauge(
      'gamewharf_build_oldest_seconds',
      'Age of the oldest pushed build that is waiting or being processed',
      () => this.oldest,
    );
  }

  completed(milliseconds: number, bytes: number): void {
    this.ended('completed', milliseconds);
    this.bytes.inc(bytes);
  }

  ended(result: Result, milliseconds: number): void {
    this.results.inc({ result });
    this.seconds.inc({ result }, milliseconds / 1000);
  }

  /** Call this regularly, because a scrape doesn't wait for the database. */
  async readOldest(): Promise<void> {
    const job = await this.database.row(OLDEST, {});
    this.oldest = job ? Math.max(0, this.clock.now() - Date.parse(job.created_at)) / 1000 : 0;
  }
}
