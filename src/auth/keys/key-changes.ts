import { Injectable } from '@nestjs/common';
import { ChangePoller } from '../../platform/cache/change-poller';
import { Clock } from '../../platform/config/clock';
import { Database } from '../../platform/database/database';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';

/** The expiry of cached API keys: each is valid until it changes. */
@Injectable()
export class KeyChanges extends ChangePoller {
  constructor(database: Database, clock: Clock, metrics: MetricsRegistry) {
    super(database, clock, metrics, {
      table: 'api_key_changes',
      subject: 'api_key_id',
      // Processing this many takes some milliseconds.
      maxSubjects: 10_000,
      tracked: 50_000,
      metric: ['gamewharf_key_change_polls_total', 'Polls for changed API keys by result'],
    });
  }
}
