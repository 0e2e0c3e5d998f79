import { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Settings } from '../config/settings';
import { BatchLoader } from './pool/batch-loader';
import { newPool } from './client';
import { connectionOptions } from './data-source';
import type { Database } from './database';
import { faultOf } from './sqlstates';
import { queryOf, type Statement, statement } from './statement';
import { inTransaction } from './pool/pipeline';

/** At the end of a transaction that writes: for whom. */
export const MARK_WRITES = statement(
  'mark_user_writes',
  `INSERT INTO user_writes AS w (user_id) SELECT id FROM unnest($1::bigint[]) AS id ORDER BY id
   ON CONFLICT (user_id) DO UPDATE SET writes = w.writes + 1`,
);

const WRITES = statement<{ user_id: number; writes: number }>(
  'user_writes',
  'SELECT user_id, writes FROM user_writes WHERE user_id = ANY ($1)',
);

const POSITION = statement<{ position: string }>(
  'primary_position',
  'SELECT pg_current_wal_insert_lsn()::text AS position',
);

// In front of the read, on the same server: what is true now is true of the read that follows.
const STATE = statement(
  'standby_state',
  `SELECT coalesce((SELECT writes FROM user_writes WHERE user_id = $1), 0) AS writes,
          coalesce(pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= $2::pg_lsn, false) AS recent`,
);

interface State {
  writes: number;
  recent: boolean;
}

// Together they leave the primary the time to answer before the request's deadline.
const CONNECT_WITHIN = 300;
const ANSWER_WITHIN = 700;
const LOOKS_PER_LAG = 4;
const LOOK_WITHIN = 1000;
const NOBODY = 0;

/**
 * Answers reads that may be a moment old. Each read asks the standby what it knows of the reader's own writes, and at the
 * same time the primary, in one question for all that read in this turn of the event loop. Where the standby knows less,
 * is further behind than allowed or does not answer, the primary is read: see docs/decisions/read-replicas.md.
 */
export class Standby {
  /** Reads, by what became of them; `refused`: not tried, as the standby was set aside. */
  readonly reads = { answered: 0, outdated: 0, failed: 0, refused: 0 };
  /** Undefined: not known yet. */
  usable: boolean | undefined;
  private readonly log = new Logger(Standby.name);
  private readonly pool: Pool;
  private readonly lag: number;
  private readonly prepared: boolean;
  private readonly writesOf = new BatchLoader((user_ids: number[]) => this.askWrites(user_ids));
  /** Where the primary's log was, and when; the oldest first. */
  private readonly positions: { at: number; position: string }[] = [];
  private readonly timer: NodeJS.Timeout;
  private looking = false;
  private closed = false;

  constructor(
    private readonly primary: Pick<Database, 'rows' | 'row'>,
    settings: Settings,
  ) {
    this.lag = settings.DATABASE_READ_LAG_SECONDS * 1000;
    this.prepared = settings.DATABASE_PREPARED_STATEMENTS;
    this.pool = newPool({
      connectionString: settings.DATABASE_READ_URL,
      application_name: 'gamewharf',
      max: settings.DATABASE_POOL_SIZE,
      ...connectionOptions,
      connectionTimeoutMillis: CONNECT_WITHIN,
      query_timeout: ANSWER_WITHIN,
    });
    this.timer = setInterval(() => void this.look(), Math.min(this.lag / LOOKS_PER_LAG, LOOK_WITHIN)).unref();
    void this.look();
  }

  async rows<Row>(user_id: number, asked: Statement<Row>, values: unknown[]): Promise<Row[]> {
    const rows = await this.tried(user_id, asked, values);
    return rows ?? this.primary.rows(asked, values);
  }

  close(): Promise<void> {
    clearInterval(this.timer);
    this.closed = true;
    return this.pool.end();
  }

  private async tried<Row>(
    user_id: number,
    asked: Statement<Row>,
    values: unknown[],
  ): Promise<Row[] | undefined> {
    const position = this.usable ? this.leastPosition() : undefined;
    if (position === undefined) {
      this.reads.refused++;
      return undefined;
    }
    const read = inTransaction(this.pool, [
      queryOf(STATE, [user_id, position], this.prepared),
      queryOf(asked, values, this.prepared),
    ]).catch((error: unknown) => this.failed(error));
    const [writes, answer] = await Promise.all([this.writesOf.load(user_id), read]);
    if (!answer) return undefined;
    const [[state], rows] = answer as [[State], Row[]];
    if (!state.recent || state.writes < writes) {
      this.reads.outdated++;
      return undefined;
    }
    this.reads.answered++;
    return rows;
  }

  private failed(error: unknown): undefined {
    this.reads.failed++;
    // What is wrong with the statement is the primary's to say, and no reason to ask the standby nothing more.
    if (faultOf(error) === 'unavailable') this.set(false, (error as Error).message);
  }

  private async askWrites(user_ids: number[]): Promise<number[]> {
    const rows = await this.primary.rows(WRITES, [user_ids]);
    const writes = new Map(rows.map((row) => [row.user_id, row.writes]));
    return user_ids.map((user_id) => writes.get(user_id) ?? 0);
  }

  /** What a standby must have replayed to be as recent as is allowed; undefined: the primary was not asked for so long. */
  private leastPosition(): string | undefined {
    const earliest = performance.now() - this.lag;
    while (this.positions.length > 0 && this.positions[0]!.at < earliest) this.positions.shift();
    return this.positions[0]?.position;
  }

  /** Asks both where they are, so that a standby is used again by itself, and no request waits for one that is not there. */
  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      const at = performance.now();
      const { position } = (await this.primary.row(POSITION, []))!;
      this.positions.push({ at, position });
      const { rows } = await this.pool.query<State>(
        queryOf(STATE, [NOBODY, this.leastPosition()], this.prepared),
      );
      this.set(rows[0]!.recent, 'it is too far behind');
    } catch (error) {
      this.set(false, (error as Error).message);
    } finally {
      this.looking = false;
    }
  }

  private set(usable: boolean, reason: string): void {
    if (this.closed || usable === this.usable) return;
    this.usable = usable;
    if (usable) this.log.log('Reads go to the standby');
    else this.log.warn(`Reads go to the primary, the standby is set aside: ${reason}`);
  }
}
