import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';

const INTERVAL = 10 * 60_000;
const BATCH_SIZE = 1000;

// Some are kept for another day, to tell a replay from an unknown token.
const EXPIRING_TABLES: [table: string, key: string, expired: string][] = [
  ['sessions', 'token_hash', 'expires_at < now()'],
  ['attempts', 'subject', 'expires_at < now()'],
  ['oauth_codes', 'code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_device_requests', 'device_code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_refresh_tokens', 'token_hash', 'expires_at < now()'],
  // People see for a month which of their own keys expired.
  [
    'api_keys',
    'id',
    `expires_at < now() - interval '1 day' AND (grant_id IS NOT NULL OR expires_at < now() - interval '30 days')`,
  ],
  ['counted_downloads', 'uuid', `counted_at < now() - interval '7 days'`],
  ['idempotency_keys', 'credential, key_hash', `created_at < now() - interval '24 hours'`],
];

// Raw SQL for SKIP LOCKED: replicas that sweep at the same time delete different rows.
const SWEEPS = EXPIRING_TABLES.map(([table, key, expired]) =>
  statement(
    `sweep_${table}`,
    `DELETE FROM ${table}
     WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${expired} LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  ),
);

/** Deletes expired rows of all tables, in batches. */
@Injectable()
export class ExpiredRowsService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(ExpiredRowsService.name);
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly database: Database) {}

  onApplicationBootstrap(): void {
    // Random, so that replicas do not sweep at the same second.
    this.timer = setInterval(() => void this.sweep(), INTERVAL * (0.9 + Math.random() / 5)).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  async sweep(): Promise<void> {
    try {
      for (const sweep of SWEEPS) while ((await this.database.rows(sweep, [])).length === BATCH_SIZE);
    } catch (error) {
      this.log.warn(`Expired rows could not be deleted: ${(error as Error).message}`);
    }
  }
}
