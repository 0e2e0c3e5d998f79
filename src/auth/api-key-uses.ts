import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { ApiKey } from './api-key.entity';

const WRITE_INTERVAL = 1000;
const MAX_WAITING = 10_000;
const BATCH_SIZE = 1000;

// SKIP LOCKED: another replica is writing the same minute.
const WRITE_USES = statement(
  'write_api_key_uses',
  `UPDATE api_keys k SET last_used_at = now(), last_used_from = used.network
   FROM unnest($1::bigint[], $2::cidr[]) used (id, network)
   WHERE k.id = used.id AND k.id IN (
     SELECT id FROM api_keys
     WHERE id = ANY ($1) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
     FOR UPDATE SKIP LOCKED)`,
);

/** Writes in the background when and where keys were last used, and their hashes under the current pepper. A full queue drops some. */
@Injectable()
export class ApiKeyUses implements BeforeApplicationShutdown {
  private readonly log = new Logger(ApiKeyUses.name);
  /** The network of each use; null: not known. */
  private readonly waiting = new Map<number, string | null>();
  private readonly rehashes = new Map<number, Buffer>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
  ) {}

  used(id: number, network: string | null): void {
    if (this.waiting.size < MAX_WAITING) this.waiting.set(id, network);
    this.writeSoon();
  }

  rehash(id: number, hash: Buffer): void {
    if (this.rehashes.size < MAX_WAITING) this.rehashes.set(id, hash);
    this.writeSoon();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearTimeout(this.timer);
    if (this.waiting.size + this.rehashes.size > 0) await this.write();
  }

  private writeSoon(): void {
    this.timer ??= setTimeout(() => void this.write(), WRITE_INTERVAL).unref();
  }

  private async write(): Promise<void> {
    const uses = [...this.waiting].slice(0, BATCH_SIZE);
    const ids = uses.map(([id]) => id);
    const rehashes = [...this.rehashes].slice(0, BATCH_SIZE);
    for (const id of ids) this.waiting.delete(id);
    for (const [id] of rehashes) this.rehashes.delete(id);
    try {
      if (ids.length > 0) await this.database.rows(WRITE_USES, [ids, uses.map(([, network]) => network)]);
      for (const [id, key_hash] of rehashes) await this.keys.update({ id }, { key_hash });
    } catch (error) {
      this.log.warn(`Uses of API keys were not written: ${(error as Error).message}`);
    }
    this.timer = undefined;
    if (this.waiting.size + this.rehashes.size > 0) this.writeSoon();
  }
}
