import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';

const EVERY = 10 * 60_000;
const AT_ONCE = 1000;

// What is over is kept for a day where it still tells a replay from a guess.
const OVER: [table: string, key: string, over: string][] = [
  ['sessions', 'token_hash', 'expires_at < now()'],
  ['attempts', 'subject', 'expires_at < now()'],
  ['oauth_codes', 'code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_device_requests', 'device_code_hash', `expires_at < now() - interval '1 day'`],
  ['oauth_refresh_tokens', 'token_hash', 'expires_at < now()'],
  ['api_keys', 'id', `expires_at < now() - interval '1 day'`],
];

// Several replicas sweep at the same time: each takes rows that no other one holds.
const SWEEPS = OVER.map(([table, key, over]) =>
  statement(
    `sweep_${table}`,
    `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${over} LIMIT ${AT_ONCE} FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  ),
);

/** Takes away sessions, codes and tokens that are over, a few at a time. */
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
      this.log.warn(`What is over could not be taken away: ${(error as Error).message}`);
    }
  }
}
