import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { staggered } from '../config/clock';
import { Database } from './database';
import { statement, type Statement } from './statement';

const INTERVAL_MS = 10 * 60_000;
const BATCH_SIZE = 1000;

/** Deletes expired rows in batches. Each module registers its own tables. */
@Injectable()
export class ExpiredRows {
  private readonly sweeps: Statement[] = [];

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

  @Interval('expired rows', staggered(INTERVAL_MS))
  async sweep(): Promise<void> {
    for (const sweep of this.sweeps) while ((await this.database.rows(sweep, {})).length === BATCH_SIZE);
  }
}
