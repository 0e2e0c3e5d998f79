import { Injectable } from '@nestjs/common';
import { ChangePoller } from '../caching/change-poller';
import { Database } from '../database/database';
import { Measurements } from '../http/measurements';

// So many take some milliseconds to process.
const MAX_SUBJECTS = 10_000;
const MAX_CHANGED_KEYS = 50_000;

/** The expiry of cached API keys: each is valid until it changes. */
@Injectable()
export class KeyChanges extends ChangePoller {
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
      tracked: MAX_CHANGED_KEYS,
    });
  }
}
