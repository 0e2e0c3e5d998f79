import { Injectable } from '@nestjs/common';
import { ChangePoller } from '../platform/cache/change-poller';
import { Clock } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { MetricsRegistry } from '../platform/observability/metrics-registry';

/** The expiry of cached builds: all expire when any build, game or username changes. */
@Injectable()
export class BuildChanges extends ChangePoller {
  constructor(database: Database, clock: Clock, metrics: MetricsRegistry) {
    super(database, clock, metrics, {
      table: 'build_changes',
      subject: '0::bigint',
      maxSubjects: 1,
      tracked: 0,
      metric: ['gamewharf_build_change_polls_total', 'Polls for changed builds by result'],
    });
  }
}
