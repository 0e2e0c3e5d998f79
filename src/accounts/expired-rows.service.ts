import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';

const EVERY = 10 * 60_000;
const AT_ONCE = 1000;

// Some are kept for a day more, in which they tell a replay from a guess.
const EXPIRED: [table: string, key: string, expired: string][] = [
  ['sessions', 'token_hash', 'expires_at < now()'],
  ['attempts', 'subject', 'expires_at < now()'],
  ['oauth_codes', 'code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_device_requests', 'device_code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_refresh_tokens', 'token_hash', 'expires_at < now()'],
  ['api_keys', 'id', `expires_at < now() - interval '1 day'`],
  ['idempotency_keys', 'credential, key_hash', `created_at < now() - interval '24 hours'`],
];

// Several replicas sweep at the same time: each takes rows that no other one holds.
const SWEEPS = EXPIRED.map(([table, key, expired]) =>
  statement(
    `sweep_${table}`,
    `DELETE FROM ${table}
     WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${expired} LIMIT ${AT_ONCE} FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  ),
);

/** Deletes what has expired, of all tables, a few rows at a time. */
@Injectable()
export class ExpiredRowsService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(ExpiredRowsService.name);
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly database: Database) {}

  onApplicationBootstrap(): void {
    // Not all replicas at the same second.
    this.timer = setInterval(() => void this.sweep(), EVERY * (0.9 + Math.random() / 5)).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  async sweep(): Promise<void> {
    try {
      for (const sweep of SWEEPS) while ((await this.database.rows(sweep, [])).length === AT_ONCE);
    } catch (error) {
      this.log.warn(`Expired rows could not be deleted: ${(error as Error).message}`);
    }
  }
}
