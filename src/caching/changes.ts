import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Database } from '../database/database';
import type { Freshness } from './short-memory';
import { type Statement, statement } from '../database/statement';

// In milliseconds. This and the time of one statement stay under the second in which a change is to be seen.
const UNCONFIRMED = 700;
const LOOK_EVERY = 250;
// A pause of those who ask must not end the looking: what was learned before would be asked again.
const LOOK_ON_FOR = 30_000;
// Ends what no trigger tells of, such as a partition that was attached.
export const LONGEST = 10 * 60_000;
const KEPT_FOR = 10 * 60_000;
// Within this time no row was swept that came after the look before.
const MOST_APART = KEPT_FOR / 2;
const SWEPT_AT_ONCE = 1000;

/** Where transactions note what they change. */
export interface Notes {
  table: string;
  /** The column that says what was changed, or an expression. */
  subject: string;
  /** More than this many are not told apart. */
  most: number;
}

/** Looks, by what they found. */
export type Looks = Record<'quiet' | 'changed' | 'failed', { value: number }>;

interface Look {
  snapshot: string;
  server: string;
  standby: boolean;
  changed: number[];
}

// By snapshots and not by the highest number: a transaction may commit after one that began later. All below the last
// look's snapshot were over by then; ORDER BY leads to the index, also where the table was never analysed. A standby's
// snapshot does not know which transactions are under way.
const lookInto = ({ table, subject, most }: Notes) =>
  statement<Look>(
    `look_for_${table}`,
    `SELECT pg_current_snapshot()::text AS snapshot, pg_postmaster_start_time()::text AS server,
       pg_is_in_recovery() AS standby,
       ARRAY(SELECT ${subject} FROM ${table}
             WHERE xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::pg_snapshot)
             ORDER BY xid DESC LIMIT ${most}) AS changed`,
  );

// What is ahead of all transactions came from the dump of another server.
const sweepOf = ({ table }: Notes) =>
  statement(
    `sweep_${table}`,
    `DELETE FROM ${table} WHERE xid IN (
       SELECT xid FROM ${table}
       WHERE pg_visible_in_snapshot(xid, $1::pg_snapshot) OR xid >= pg_snapshot_xmax(pg_current_snapshot())
       LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  );

/**
 * Says how long answers stay true, while somebody asks: docs/decisions/remembered-builds.md.
 *
 * A look that finds nothing proves that nothing was committed between its snapshot and the one before. The snapshot of a
 * question that was sent after a look was received holds all that the look's does. So what was learned after the last look
 * that found something is as true as if it had been asked when the last look of all was sent.
 */
export abstract class Changes implements Freshness, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly lookStatement: Statement<Look>;
  private readonly sweepStatement: Statement;
  private timer: NodeJS.Timeout | undefined;
  private looking = false;
  private asked = -Infinity;
  /** When the last look was sent, and when the last one that proved nothing was received. */
  private confirmed = -Infinity;
  private unproven = Infinity;
  private last: (Look & { at: number }) | undefined;
  /** When it is old enough, what it saw is swept. */
  private sweepable: (Look & { sent: number }) | undefined;

  protected constructor(
    private readonly database: Database,
    private readonly looks: Looks,
    private readonly notes: Notes,
  ) {
    this.lookStatement = lookInto(notes);
    this.sweepStatement = sweepOf(notes);
  }

  onApplicationBootstrap(): void {
    // Not begun by a request, whose trace every look would then be part of.
    this.timer = setInterval(() => void this.look(), LOOK_EVERY).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  freshAfter(now: number): number {
    this.asked = now;
    return now - this.confirmed < UNCONFIRMED ? this.staleUntil(now) : now - UNCONFIRMED;
  }

  staleUntil(now: number): number {
    return Math.min(now - UNCONFIRMED, Math.max(this.unproven, now - LONGEST));
  }

  /** What is known of these was learned too early. All that is known, unless it can be told what of it. */
  protected changed(_subjects: number[], _received: number): void {
    this.doubtAll();
  }

  protected doubtAll(): void {
    this.unproven = performance.now();
  }

  private async look(): Promise<void> {
    const sent = performance.now();
    if (this.looking || sent - this.asked > LOOK_ON_FOR) return;
    this.looking = true;
    // By this clock, which goes on while the machine sleeps: others sweep meanwhile.
    const at = Date.now();
    try {
      const found = (await this.database.row(this.lookStatement, [this.last?.snapshot ?? null]))!;
      const told = this.compare(found, at);
      this.confirmed = sent;
      this.last = found.standby ? undefined : { ...found, at };
      this.looks[told].value++;
      void this.sweep({ ...found, sent });
    } catch {
      // Not confirmed: whoever asks meanwhile asks the database, and is told what is wrong.
      this.looks.failed.value++;
    } finally {
      this.looking = false;
    }
  }

  private compare({ server, changed }: Look, at: number): 'quiet' | 'changed' {
    const { last, notes } = this;
    // On another server, numbers of transactions that were lost with the old one may mean others.
    if (last?.server !== server || at - last.at >= MOST_APART || changed.length === notes.most)
      this.doubtAll();
    else if (changed.length > 0) this.changed(changed, performance.now());
    else return 'quiet';
    return 'changed';
  }

  /** By snapshot and not by time: a row is as old as its transaction, which may have been committed just now. */
  private async sweep(look: Look & { sent: number }): Promise<void> {
    const seen = this.sweepable?.server === look.server ? this.sweepable : undefined;
    if (seen && look.sent - seen.sent < KEPT_FOR) return;
    this.sweepable = look;
    try {
      // Rows of one transaction go together.
      while (
        (await this.database.rows(this.sweepStatement, [seen?.snapshot ?? null])).length >= SWEPT_AT_ONCE
      );
    } catch {
      // The next one takes them.
    }
  }
}
