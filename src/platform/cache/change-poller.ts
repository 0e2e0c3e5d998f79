import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Clock } from '../config/clock';
import type { Database } from '../database/database';
import { read, statement, type Statement } from '../database/statement';
import type { Counter } from 'prom-client';
import type { MetricsRegistry } from '../observability/metrics-registry';
import type { Expiry } from './expiring-cache';

// In milliseconds. With the duration of one statement, a change takes effect within less than a second.
const MAX_AGE_UNCONFIRMED = 700;
const POLL_INTERVAL = 250;
// Polling continues through pauses between requests: when it stops, the whole cache expires.
const IDLE_TIMEOUT = 30_000;
/** For changes that no trigger records, such as attaching a partition. */
export const MAX_AGE = 10 * 60_000;
const RECORDS_KEPT_FOR = 10 * 60_000;
// In this time, no record that was created after the last poll can have been deleted.
const MAX_POLL_GAP = RECORDS_KEPT_FOR / 2;
const DELETED_AT_ONCE = 1000;

/** The table in which transactions record what they change. */
interface ChangeTable {
  table: string;
  /** An expression for the ID of the changed subject. */
  subject: string;
  /** If more IDs than this changed, all count as changed. */
  maxSubjects: number;
  /** Number of subjects whose changes are tracked separately; 0: any change expires the whole cache. */
  tracked: number;
  /** The name and the help text of its metric. */
  metric: [string, string];
}

/** The trigger's ID for a change of all subjects, such as a TRUNCATE. */
const ALL = 0;

interface Poll {
  snapshot: string;
  server: string;
  standby: boolean;
  changed: number[];
}

// By snapshot, not by the highest transaction ID: a transaction may commit after one that began later. ORDER BY makes
// the planner use the index, even of a table that was never analyzed.
const pollOf = ({ table, subject, maxSubjects }: ChangeTable) =>
  read<Poll>(
    `poll_${table}`,
    `SELECT pg_current_snapshot()::text AS snapshot, pg_postmaster_start_time()::text AS server,
       pg_is_in_recovery() AS standby,
       ARRAY(SELECT ${subject} FROM ${table}
             WHERE xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::pg_snapshot)
             ORDER BY xid DESC LIMIT ${maxSubjects}) AS changed`,
  );

// IDs ahead of all transactions come from the dump of another server.
const deletionOf = ({ table }: ChangeTable) =>
  statement(
    `delete_old_${table}`,
    `DELETE FROM ${table} WHERE xid IN (
       SELECT xid FROM ${table}
       WHERE pg_visible_in_snapshot(xid, $1::pg_snapshot) OR xid >= pg_snapshot_xmax(pg_current_snapshot())
       LIMIT ${DELETED_AT_ONCE} FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  );

/**
 * While polls find no change, all values count as read at the last poll: docs/contributing/decisions/build-cache.md.
 */
export abstract class ChangePoller implements Expiry, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly pollStatement: Statement<Poll>;
  private readonly deletion: Statement;
  private readonly polls: Counter<'result'>;
  private timer: NodeJS.Timeout | undefined;
  private polling: Promise<void> | undefined;
  private lastRead = -Infinity;
  /** When the last successful poll was sent. */
  private confirmedAt = -Infinity;
  /** Values read until then are not covered by the polls. */
  private distrustedUntil = Infinity;
  /** The time of each tracked subject's last change, the oldest first. */
  private readonly changedAt = new Map<number, number>();
  private last: (Poll & { at: number }) | undefined;
  /** Records that this poll saw are deleted once it is RECORDS_KEPT_FOR old. */
  private deletable: (Poll & { sent: number }) | undefined;

  protected constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    private readonly changeTable: ChangeTable,
  ) {
    this.polls = metrics.counter(...changeTable.metric, { result: ['unchanged', 'changed', 'failed'] });
    this.pollStatement = pollOf(changeTable);
    this.deletion = deletionOf(changeTable);
  }

  onApplicationBootstrap(): void {
    // Not started by a request, or every poll would be part of its trace.
    this.startPolling();
  }

  onApplicationShutdown(): void {
    this.stopPolling();
  }

  startPolling(): void {
    this.timer ??= setInterval(() => void (this.polling ?? this.poll()), POLL_INTERVAL).unref();
  }

  stopPolling(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  freshAfter(now: number): number {
    this.lastRead = now;
    return now - this.confirmedAt < MAX_AGE_UNCONFIRMED ? this.staleUntil(now) : now - MAX_AGE_UNCONFIRMED;
  }

  staleUntil(now: number): number {
    return Math.min(now - MAX_AGE_UNCONFIRMED, Math.max(this.distrustedUntil, now - MAX_AGE));
  }

  /** Whether a tracked subject changed after it was read. */
  changedSince(subject: number, readAt: number): boolean {
    const at = this.changedAt.get(subject);
    return at !== undefined && at >= readAt;
  }

  /** Expires everything cached for these subjects. */
  note(subjects: readonly number[], now = this.clock.monotonic()): void {
    if (subjects.includes(ALL)) return this.distrustAll();
    for (const subject of subjects) {
      this.changedAt.delete(subject);
      this.changedAt.set(subject, now);
    }
    for (const [oldest, at] of this.changedAt) {
      if (now - at < MAX_AGE) break;
      this.changedAt.delete(oldest);
    }
    if (this.changedAt.size <= this.changeTable.tracked) return;
    this.changedAt.clear();
    this.distrustAll();
  }

  private distrustAll(): void {
    this.distrustedUntil = this.clock.monotonic();
  }

  /** Reads what changed since the last poll. If a poll is in progress, sends another one after it. */
  async poll(): Promise<void> {
    while (this.polling) await this.polling;
    this.polling = this.readChanges().finally(() => (this.polling = undefined));
    await this.polling;
  }

  private async readChanges(): Promise<void> {
    const sent = this.clock.monotonic();
    if (sent - this.lastRead > IDLE_TIMEOUT) return;
    // The wall clock continues while the machine sleeps, when other replicas may delete records.
    const at = this.clock.now();
    try {
      const poll = (await this.database.row(this.pollStatement, [this.last?.snapshot ?? null]))!;
      const result = this.compare(poll, at);
      this.confirmedAt = sent;
      this.last = poll.standby ? undefined : { ...poll, at };
      this.polls.inc({ result });
      void this.deleteOld({ ...poll, sent });
    } catch {
      // Without confirmation, requests read from the database until then, and get its errors.
      this.polls.inc({ result: 'failed' });
    }
  }

  private compare({ server, changed }: Poll, at: number): 'unchanged' | 'changed' {
    const { last, changeTable } = this;
    // On another server, transaction IDs that were lost with the old one may be used again.
    if (last?.server !== server || at - last.at >= MAX_POLL_GAP || changed.length === changeTable.maxSubjects)
      this.distrustAll();
    else if (changed.length > 0) this.note(changed);
    else return 'unchanged';
    return 'changed';
  }

  /** By snapshot and not by age: an old transaction may have been committed just now. */
  private async deleteOld(poll: Poll & { sent: number }): Promise<void> {
    const seen = this.deletable?.server === poll.server ? this.deletable : undefined;
    if (seen && poll.sent - seen.sent < RECORDS_KEPT_FOR) return;
    this.deletable = poll;
    try {
      // The records of one transaction are deleted together, so there may be more than the limit.
      while ((await this.database.rows(this.deletion, [seen?.snapshot ?? null])).length >= DELETED_AT_ONCE);
    } catch {
      // The next replica or the next run deletes them.
    }
  }
}
