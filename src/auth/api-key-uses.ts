import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';

const WRITE_EVERY = 1000;
const MOST_WAITING = 10_000;
const MOST_AT_ONCE = 1000;

// SKIP LOCKED: another replica that writes these keys writes the same minute.
const WRITE_USES = statement(
  'write_api_key_uses',
  `UPDATE api_keys SET last_used_at = now() WHERE id IN (
     SELECT id FROM api_keys
     WHERE id = ANY ($1) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
     FOR UPDATE SKIP LOCKED)`,
);

const REHASH = statement('rehash_api_key', 'UPDATE api_keys SET key_hash = $2 WHERE id = $1');

/**
 * Writes when keys were last used, to the minute, and their hashes under the current pepper. No request waits for it; where
 * more keys are used than can be written, some uses are dropped.
 */
@Injectable()
export class ApiKeyUses implements BeforeApplicationShutdown {
  private readonly log = new Logger(ApiKeyUses.name);
  private readonly waiting = new Set<number>();
  private readonly rehashes = new Map<number, string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly database: Database) {}

  used(id: number): void {
    if (this.waiting.size < MOST_WAITING) this.waiting.add(id);
    this.writeSoon();
  }

  rehash(id: number, hash: string): void {
    if (this.rehashes.size < MOST_WAITING) this.rehashes.set(id, hash);
    this.writeSoon();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearTimeout(this.timer);
    if (this.waiting.size + this.rehashes.size > 0) await this.write();
  }

  private writeSoon(): void {
    this.timer ??= setTimeout(() => void this.write(), WRITE_EVERY).unref();
  }

  private async write(): Promise<void> {
    const ids = [...this.waiting].slice(0, MOST_AT_ONCE);
    const rehashes = [...this.rehashes].slice(0, MOST_AT_ONCE);
    for (const id of ids) this.waiting.delete(id);
    for (const [id] of rehashes) this.rehashes.delete(id);
    try {
      if (ids.length > 0) await this.database.rows(WRITE_USES, [ids]);
      for (const rehash of rehashes) await this.database.rows(REHASH, rehash);
    } catch (error) {
      this.log.warn(`Uses of API keys were not written: ${(error as Error).message}`);
    }
    this.timer = undefined;
    if (this.waiting.size + this.rehashes.size > 0) this.writeSoon();
  }
}
