import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type { EntityManager } from 'typeorm';
import { Clock, staggered } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';
import { FileStorage } from './storage/file-storage';
import { NoStorage } from './storage/no-storage';

const UNUSED_FILES_INTERVAL_MS = 50_000;
const FILES_PER_SLICE = 100;
/** A file that isn't recorded within this time after it was announced is deleted. */
const ANNOUNCED_MS = 24 * 3600 * 1000;
/** The wait after a file couldn't be deleted, so that it doesn't keep the others from being deleted. */
const DELETION_RETRY_MS = 10 * 60_000;

/** The files with these keys are deleted at `$due_at`. */
const RECORD_UNUSED = statement<{ file_key: string }>(
  'record_unused_files',
  `INSERT INTO unused_files (file_key, due_at) SELECT DISTINCT unnest($file_keys::text[]), $due_at::timestamptz
   ON CONFLICT (file_key) DO UPDATE SET due_at = least(unused_files.due_at, EXCLUDED.due_at)`,
);

// Most keys begin with the ID of their game, so only its records are read. An index has the records with other keys.
const IS_ELSEWHERE = `file_key = q.file_key AND split_part(file_key, '/', 1) <> game_id::text`;
const GAME_OF_KEY = `split_part(q.file_key, '/', 1)::bigint`;
const IS_USED = `(EXISTS (SELECT FROM uploads WHERE ${IS_ELSEWHERE}) OR EXISTS (SELECT FROM builds WHERE ${IS_ELSEWHERE})
   OR CASE WHEN q.file_key ~ '^[0-9]{1,18}(/|$)' THEN
     EXISTS (SELECT FROM uploads WHERE game_id = ${GAME_OF_KEY} AND file_key = q.file_key)
     OR EXISTS (SELECT FROM builds WHERE game_id = ${GAME_OF_KEY} AND file_key = q.file_key)
     OR EXISTS (SELECT FROM builds b JOIN build_files f ON f.build_id = b.id
                WHERE b.game_id = ${GAME_OF_KEY} AND f.file_key = q.file_key)
   ELSE false END) AS is_used`;

// Times of this process have no microseconds, unlike those of the database.
const IS_DUE = (due_at: string, now: string) => `date_trunc('milliseconds', ${due_at}) <= ${now}`;

/** The files that are due at `$now` after the key `$after`; `$keys`: only these. */
const DUE = longRead<{ file_key: string; is_used: boolean }>(
  'due_unused_files',
  `SELECT q.file_key, ${IS_USED} FROM unused_files q
   WHERE ${IS_DUE('q.due_at', '$now')} AND q.file_key > $after AND ($keys::text[] IS NULL OR q.file_key = ANY ($keys))
   ORDER BY q.file_key LIMIT ${FILES_PER_SLICE}`,
);

const FORGET = statement(
  'forget_unused_files',
  `DELETE FROM unused_files WHERE file_key = ANY ($file_keys::text[]) AND ${IS_DUE('due_at', '$now')}`,
);

const POSTPONE_FILE = statement(
  'postpone_unused_file',
  'UPDATE unused_files SET due_at = $due_at WHERE file_key = $file_key',
);

/** Deletes stored files that no record uses, including those of processes that were killed. */
@Injectable()
export class UnusedFiles implements OnApplicationShutdown {
  private readonly log = new Logger('Files');
  private running: Promise<void> = Promise.resolve();
  /** Calls of `wake` that haven't begun. The last one does the work of all. */
  private sweeps = 0;

  constructor(
    private readonly database: Database,
    private readonly storage: FileStorage,
    private readonly clock: Clock,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.running;
  }

  /**
   * Must be called before a file is stored, so that the file is deleted if this process is killed before
   * recording the file.
   */
  async announce(file_key: string): Promise<void> {
    const due = new Date(this.clock.now() + ANNOUNCED_MS);
    await this.database.rows(RECORD_UNUSED, { file_keys: [file_key], due_at: due });
  }

  /**
   * Records files whose keys this service didn't choose. Must run in the transaction that removes them from
   * their records. Triggers record the others.
   */
  async record(keys: readonly (string | null)[], db?: EntityManager): Promise<void> {
    const known = keys.filter((key) => key !== null);
    if (known.length === 0) return;
    await this.database.rows(RECORD_UNUSED, { file_keys: known, due_at: new Date(this.clock.now()) }, db);
  }

  /** Deletes files that no record uses. Failures are logged, and repeated by the next sweep. */
  async delete(keys: readonly string[]): Promise<void> {
    await this.record(keys);
    await this.deleteDue(keys);
  }

  /** Deletes due files in the background. */
  @Interval('unused files', staggered(UNUSED_FILES_INTERVAL_MS))
  wake(): void {
    this.sweeps++;
    this.running = this.running.then(() => (--this.sweeps === 0 ? this.deleteDue() : undefined));
  }

  /** Waits for deletions that started in the background. */
  async waitForDeletions(): Promise<void> {
    await this.running;
  }

  /** Deletes due files: all of them, or only those with these keys. */
  async deleteDue(keys: readonly string[] | null = null): Promise<void> {
    if (this.storage instanceof NoStorage) return;
    const now = new Date(this.clock.now());
    let after = '';
    try {
      for (;;) {
        const slice = await this.database.rows(DUE, { now, after, keys });
        for (const { file_key, is_used } of slice) {
          if (!is_used) await this.deleteOne(file_key);
          await this.database.rows(FORGET, { file_keys: [file_key], now });
        }
        if (slice.length < FILES_PER_SLICE) return;
        after = slice.at(-1)!.file_key;
      }
    } catch (error) {
      this.log.warn(`Unused files could not be deleted: ${(error as Error).message}`);
    }
  }

  private async deleteOne(file_key: string): Promise<void> {
    try {
      await this.storage.delete(file_key);
    } catch (error) {
      await this.database.rows(POSTPONE_FILE, {
        file_key,
        due_at: new Date(this.clock.now() + DELETION_RETRY_MS),
      });
      throw error;
    }
  }
}
