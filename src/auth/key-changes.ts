import { Injectable } from '@nestjs/common';
import { ChangePoller, MAX_AGE } from '../caching/change-poller';
import { Database } from '../database/database';
import { Measurements } from '../http/measurements';

// The trigger's id for a TRUNCATE of all keys.
const ALL_KEYS = 0;
// So many take some milliseconds to process.
const MAX_SUBJECTS = 10_000;
const MAX_CHANGED_KEYS = 50_000;

/** The expiry of cached API keys: each is valid until it changes. */
@Injectable()
export class KeyChanges extends ChangePoller {
  /** The time of each key's last change, the oldest first. */
  private readonly changedAt = new Map<number, number>();

  constructor(database: Database, measurements: Measurements) {
    const help = 'Polls for changed API keys, by result';
    const polls = measurements.results(
      'gamewharf_key_change_looks_total',
      help,
      'quiet',
      'changed',
      'failed',
    );
    super(database, polls, {
      table: 'api_key_changes',
      subject: 'api_key_id',
      maxSubjects: MAX_SUBJECTS,
    });
  }

  /** Whether the key changed after it was read. */
  changedSince(api_key_id: number, readAt: number): boolean {
    const at = this.changedAt.get(api_key_id);
    return at !== undefined && at >= readAt;
  }

  /** Distrusts everything cached for the key. */
  note(api_key_id: number, now = performance.now()): void {
    this.noteAll([api_key_id], now);
  }

  private noteAll(api_key_ids: number[], now: number): void {
    for (const id of api_key_ids) {
      this.changedAt.delete(id);
      this.changedAt.set(id, now);
    }
    for (const [oldest, at] of this.changedAt) {
      if (now - at < MAX_AGE) break;
      this.changedAt.delete(oldest);
    }
    if (this.changedAt.size <= MAX_CHANGED_KEYS) return;
    this.changedAt.clear();
    this.distrustAll();
  }

  protected override changed(api_key_ids: number[], received: number): void {
    if (api_key_ids.includes(ALL_KEYS)) this.distrustAll();
    else this.noteAll(api_key_ids, received);
  }
}
