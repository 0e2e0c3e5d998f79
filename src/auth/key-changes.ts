import { Injectable } from '@nestjs/common';
import { Changes, LONGEST } from '../caching/changes';
import { Database } from '../database/database';
import { Measurements } from '../http/measurements';

// Noted where all keys were taken away at once.
const ALL_KEYS = 0;
// To take in so many takes some milliseconds.
const MOST_AT_ONCE = 10_000;
const MOST_KNOWN = 50_000;

/** How long what is remembered of API keys stays true: until they change, each by itself. */
@Injectable()
export class KeyChanges extends Changes {
  /** When the last change of a key was seen; the oldest first. */
  private readonly changedAt = new Map<number, number>();

  constructor(database: Database, measurements: Measurements) {
    const help = 'Looks whether remembered API keys still stand, by what they found';
    const looks = measurements.results(
      'gamewharf_key_change_looks_total',
      help,
      'quiet',
      'changed',
      'failed',
    );
    super(database, looks, {
      table: 'api_key_changes',
      subject: 'api_key_id',
      most: MOST_AT_ONCE,
    });
  }

  /** Whether the key changed after this was learned of it. */
  changedSince(api_key_id: number, learned: number): boolean {
    const at = this.changedAt.get(api_key_id);
    return at !== undefined && at >= learned;
  }

  /** Distrusts what was learned of the key before. */
  note(api_key_id: number, now = performance.now()): void {
    this.changedAt.delete(api_key_id);
    this.changedAt.set(api_key_id, now);
    for (const [oldest, at] of this.changedAt) {
      if (now - at < LONGEST) break;
      this.changedAt.delete(oldest);
    }
    if (this.changedAt.size <= MOST_KNOWN) return;
    this.changedAt.clear();
    this.doubtAll();
  }

  protected override changed(api_key_ids: number[], received: number): void {
    if (api_key_ids.includes(ALL_KEYS)) this.doubtAll();
    else for (const id of api_key_ids) this.note(id, received);
  }
}
