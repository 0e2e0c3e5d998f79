import { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Settings } from '../config/settings';
import { BatchLoader } from './pool/batching';
import { newPool } from './client';
import { connectionOptions } from './data-source';
import type { Database } from './database';
import { faultOf } from './sqlstates';
import { read, statement, type Statement } from './statement';
import { inTransaction, queryOf } from './pool/pipeline';

/** Run at the end of a transaction that writes, with the users who write. */
export const MARK_WRITES = statement(
  'mark_user_writes',
  `INSERT INTO user_writes AS w (user_id) SELECT id FROM unnest($1::bigint[]) AS id ORDER BY id
   ON CONFLICT (user_id) DO UPDATE SET writes = w.writes + 1`,
);

const WRITES = read<{ user_id: number; writes: number }>(
  'user_writes',
  'SELECT user_id, writes FROM user_writes WHERE user_id = ANY ($1)',
);

const POSITION = read<{ position: string }>(
  'primary_position',
  'SELECT pg_current_wal_insert_lsn()::text AS position',
);

// Run in front of the read, in the same transaction: the read sees at least this state.
const STATE = statement(
  'standby_state',
  `SELECT coalesce((SELECT writes FROM user_writes WHERE user_id = $1), 0) AS writes,
          coalesce(pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= $2::pg_lsn, false) AS recent`,
);

interface State {
  writes: number;
  recent: boolean;
}

// In milliseconds. The two timeouts leave the primary enough time to answer before the request's deadline.
const CONNECT_TIMEOUT = 300;
const QUERY_TIMEOUT = 700;
const MAX_CHECK_INTERVAL = 1000;
const CHECKS_PER_LAG = 4;
const NOBODY = 0;

/**
 * Runs reads that may be a moment old on a standby. Where it is too far behind, lacks one of the user's own writes or does
 * not answer, the read runs on the primary: docs/explanation/decisions/read-replicas.md.
 */
export class Standby {
  /** Counts reads by their result; `refused`: not tried, as the standby was not usable. */
  readonly reads = { answered: 0, outdated: 0, failed: 0, refused: 0 };
  /** Undefined until the first check. */
  usable: boolean | undefined;
  private readonly log = new Logger(Standby.name);
  private readonly pool: Pool;
  private readonly lag: number;
  private readonly prepared: boolean;
  private readonly writeCounts = new BatchLoader((user_ids: number[]) => this.loadWriteCounts(user_ids));
  /** Positions of the primary's log, the oldest first. */
  private readonly positions: { at: number; position: string }[] = [];
  private readonly timer: NodeJS.Timeout;
  private checking = false;
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
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      query_timeout: QUERY_TIMEOUT,
    });
    this.timer = setInterval(
      () => void this.check(),
      Math.min(this.lag / CHECKS_PER_LAG, MAX_CHECK_INTERVAL),
    ).unref();
    void this.check();
  }

  async rows<Row>(user_id: number, statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    const rows = await this.tryStandby(user_id, statement, values);
    return rows ?? this.primary.rows(statement, values);
  }

  close(): Promise<void> {
    clearInterval(this.timer);
    this.closed = true;
    return this.pool.end();
  }

  private async tryStandby<Row>(
    user_id: number,
    statement: Statement<Row>,
    values: unknown[],
  ): Promise<Row[] | undefined> {
    const position = this.usable ? this.requiredPosition() : undefined;
    if (position === undefined) {
      this.reads.refused++;
      return undefined;
    }
    const read = inTransaction(this.pool, [
      queryOf(STATE, [user_id, position], this.prepared),
      queryOf(statement, values, this.prepared),
    ]).catch((error: unknown) => this.failed(error));
    const [writes, answer] = await Promise.all([this.writeCounts.load(user_id), read]);
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
    // Where the statement itself is wrong, the primary will say so, and the standby can still be used.
    if (faultOf(error) === 'unavailable') this.set(false, (error as Error).message);
  }

  private async loadWriteCounts(user_ids: number[]): Promise<number[]> {
    const rows = await this.primary.rows(WRITES, [user_ids]);
    const writes = new Map(rows.map((row) => [row.user_id, row.writes]));
    return user_ids.map((user_id) => writes.get(user_id) ?? 0);
  }

  /** What a standby must have replayed to be recent enough; undefined: no check of the primary succeeded in that time. */
  private requiredPosition(): string | undefined {
    const oldest = performance.now() - this.lag;
    while (this.positions.length > 0 && this.positions[0]!.at < oldest) this.positions.shift();
    return this.positions[0]?.position;
  }

  /** Decides whether the standby is used, so that no request waits for one that does not answer. */
  private async check(): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    try {
      const at = performance.now();
      const { position } = (await this.primary.row(POSITION, []))!;
      this.positions.push({ at, position });
      const { rows } = await this.pool.query<State>(
        queryOf(STATE, [NOBODY, this.requiredPosition()], this.prepared),
      );
      this.set(rows[0]!.recent, 'it is too far behind');
    } catch (error) {
      this.set(false, (error as Error).message);
    } finally {
      this.checking = false;
    }
  }

  private set(usable: boolean, reason: string): void {
    if (this.closed || usable === this.usable) return;
    this.usable = usable;
    if (usable) this.log.log('Reads go to the standby');
    else this.log.warn(`Reads go to the primary, as the standby cannot be used: ${reason}`);
  }
}
