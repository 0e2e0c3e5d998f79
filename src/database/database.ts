import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Pool, PoolClient } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { Settings } from '../config/settings';
import { Gathering } from './pool/gathering';
import { requireMigrated } from './migrate';
import { connectionProblem, requireSupportedServer } from './reachable';
import { faultOf, isConnectionLost, NotConnected } from './sqlstates';
import { queryOf, type Statement } from './statement';
import { MARK_WRITES, Standby } from './standby';
import { type Change, Queues } from './pool/queues';
import { type Around, Flight, inDialogue, inTransaction, type Statements } from './pool/transactions';

const GOODBYE = 2000;

/** Runs statements: each on its own, gathered with others, or in a transaction. */
@Injectable()
export class Database implements Statements, OnApplicationShutdown {
  private readonly log = new Logger(Database.name);
  around: Around | undefined;
  /** Where reads may go that may be a moment old; undefined: none is configured. */
  standby: Standby | undefined;
  private pool: Pool | undefined;
  private gathering: Gathering | undefined;
  private queues: Queues | undefined;
  private stopped = false;

  constructor(
    @InjectDataSource() readonly source: DataSource,
    private readonly settings: Settings,
  ) {}

  get connected(): boolean {
    return this.pool !== undefined;
  }

  /** What the pool is doing now. */
  get connections(): { busy: number; idle: number; waiting: number } {
    if (!this.pool) return { busy: 0, idle: 0, waiting: 0 };
    const { totalCount, idleCount, waitingCount } = this.pool;
    return {
      busy: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + this.gathering!.waiting,
    };
  }

  /** Waits for the server as long as it takes; a schema that is too old is the operator's to mend. */
  async connect(): Promise<void> {
    for (let attempt = 0; !this.stopped; attempt++) {
      try {
        if (!this.source.isInitialized) await this.source.initialize();
        await this.begin((this.source.driver as PostgresDriver).master as Pool);
        return;
      } catch (error) {
        const problem = connectionProblem(this.settings.DATABASE_URL, error);
        // A server that is there and refuses us will go on doing so.
        if (faultOf(error) !== 'unavailable') throw problem ?? error;
        if (attempt % 10 === 0) this.log.warn(`Waiting: ${problem?.message}`);
        await sleep(500);
      }
    }
  }

  private async begin(pool: Pool): Promise<void> {
    await requireSupportedServer(pool);
    await requireMigrated(this.source);
    if (this.stopped) return;
    this.gathering = new Gathering(pool);
    this.pool = pool;
    if (this.settings.DATABASE_READ_URL) this.standby = new Standby(this, this.settings);
    this.queues = new Queues(pool, this.settings.DATABASE_PREPARED_STATEMENTS, this.standby && MARK_WRITES);
  }

  async rows<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    if (!this.pool) throw new NotConnected();
    const query = queryOf(statement, values, this.settings.DATABASE_PREPARED_STATEMENTS);
    const gathering = this.gathering!;
    const ask = () => gathering.rows(query, statement);
    return this.around ? this.around(statement.name, ask) : ask();
  }

  async row<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row | undefined> {
    return (await this.rows(statement, values))[0];
  }

  /** A read of many rows that may be a moment old, but never older than what this user's credentials have written. */
  rowsFor<Row>(user_id: number, statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    const { standby } = this;
    if (!standby) return this.rows(statement, values);
    const read = () => standby.rows(user_id, statement, values);
    return this.around ? this.around(statement.name, read) : read();
  }

  /** In a dialogue that writes for a user, at its end: lets `rowsFor` know. */
  mark(db: Statements, user_id: number): Promise<unknown> | undefined {
    return this.standby && db.rows(MARK_WRITES, [[user_id]]);
  }

  /**
   * As TypeORM's own, but for a connection that no longer answers: its ROLLBACK would wait behind the query that hangs, and
   * the connection would go back to the pool with that query still on it. It is thrown away, and the server rolls back.
   */
  async transaction<Result>(work: (db: EntityManager) => Promise<Result>): Promise<Result> {
    if (!this.pool) throw new NotConnected();
    const transacted = () => this.transacted(work);
    return this.around ? this.around('transaction', transacted) : transacted();
  }

  private async transacted<Result>(work: (db: EntityManager) => Promise<Result>): Promise<Result> {
    const runner = this.source.createQueryRunner();
    const connection = (await runner.connect()) as PoolClient;
    const discard = (error: unknown) => void connection.emit('error', error as Error);
    try {
      await runner.startTransaction();
      const result = await work(runner.manager);
      await runner.commitTransaction();
      return result;
    } catch (error) {
      if (isConnectionLost(error)) discard(error);
      else if (!runner.isReleased) await runner.rollbackTransaction().catch(discard);
      throw error;
    } finally {
      await runner.release();
    }
  }

  /**
   * A transaction whose statements all leave at once: `work` asks for them before it waits for any, so that a lock is held
   * for as long as the server takes and not for as long as our answers travel. Changes wait for others of the same thing.
   */
  flight<Result>(work: (db: Statements) => Promise<Result>, change?: Change): Promise<Result> {
    const transacted = () => this.flown(work, change);
    return this.around ? this.around('transaction', transacted) : transacted();
  }

  private async flown<Result>(
    work: (db: Statements) => Promise<Result>,
    change: Change | undefined,
  ): Promise<Result> {
    if (!this.pool) throw new NotConnected();
    const flight = new Flight(this.settings.DATABASE_PREPARED_STATEMENTS, this.around);
    const result = work(flight);
    // It is waited for below.
    result.catch(() => undefined);
    const queries = flight.close();
    if (queries.length > 0) {
      if (change) this.queues!.join(change, flight);
      else
        inTransaction(this.pool, queries).then(
          (rows) => flight.answer(rows),
          (error: unknown) => flight.fail(error),
        );
    }
    return result;
  }

  /** A transaction whose statements depend on one another's answers. */
  async dialogue<Result>(work: (db: Statements) => Promise<Result>): Promise<Result> {
    const { pool, around } = this;
    if (!pool) throw new NotConnected();
    const transacted = () => inDialogue(pool, this.settings.DATABASE_PREPARED_STATEMENTS, around, work);
    return around ? around('transaction', transacted) : transacted();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.pool = undefined;
    const goodbye = async () => {
      await this.standby?.close();
      if (this.source.isInitialized) await this.source.destroy();
    };
    // A server that hangs says goodbye to nobody.
    await Promise.race([goodbye(), sleep(GOODBYE, undefined, { ref: false })]);
  }
}
