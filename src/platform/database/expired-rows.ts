import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Database } from './database';
import { statement, type Statement } from './statement';

const INTERVAL_MS = 10 * 60_000;
const BATCH_SIZE = 1000;

/** Deletes expired rows in batches. Each module registers its own tables. */
@Injectable()
export class ExpiredRows implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(ExpiredRows.name);
  private readonly sweeps: Statement[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly database: Database) {}

  /** `key`: the columns of the primary key. `expired`: a condition on rows of the table. */
  register(table: string, key: string, expired: string): void {
    // SKIP LOCKED: replicas that sweep at the same time delete different rows.
    this.sweeps.push(
      statement(
        `sweep_${table}`,
        `DELETE FROM ${table}
         WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${expired} LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED)
         RETURNING 1`,
      ),
    );
  }

  onApplicationBootstrap(): void {
    // The interval is random, so that replicas don't sweep in the same second.
    this.timer = setInterval(() => void this.sweep(), INTERVAL_MS * (0.9 + Math.random() / 5)).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  async sweep(): Promise<void> {
    try {
      for (const sweep of this.sweeps) while ((await this.database.rows(sweep, {})).length === BATCH_SIZE);
    } catch (error) {
      this.log.warn(`Expired rows could not be deleted: ${(error as Error).message}`);
    }
  }
}
