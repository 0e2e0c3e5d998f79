import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Pool, PoolClient } from 'pg';
import { type DataSource, type EntityManager, QueryRunnerAlreadyReleasedError } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { Settings } from '../config/settings';
import { inTransaction } from './pool/pipeline';
import { StatementBatcher } from './pool/statement-batcher';
import { requireMigrated } from './migrate';
import { connectionProblem, requireSupportedServer } from './reachable';
import { faultOf, isConnectionLost, NotConnected } from './sqlstates';
import { bind, type BoundStatement, queryOf, type RowsOf, type Statement, type Write } from './statement';
import { MARK_WRITES, Standby } from './standby';
import { type Lock, WriteQueues } from './pool/write-queues';

const GOODBYE = 2000;

/** Traces are written by it: wraps work in a span. */
export type Around = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** Runs statements: each on its own, gathered with others, or in a transaction. */
@Injectable()
export class Database implements OnApplicationShutdown {
  private readonly log = new Logger(Database.name);
  around: Around | undefined;
  /** Where reads may go that may be a moment old; undefined: none is configured. */
  standby: Standby | undefined;
  private pool: Pool | undefined;
  private batcher: StatementBatcher | undefined;
  private writeQueues: WriteQueues | undefined;
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
      waiting: waitingCount + this.batcher!.waiting,
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
    this.batcher = new StatementBatcher(pool);
    this.pool = pool;
    if (this.settings.DATABASE_READ_URL) this.standby = new Standby(this, this.settings);
    this.writeQueues = new WriteQueues(
      pool,
      this.settings.DATABASE_PREPARED_STATEMENTS,
      this.standby && MARK_WRITES,
    );
  }

  async rows<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    if (!this.pool) throw new NotConnected();
    const query = queryOf(statement, values, this.settings.DATABASE_PREPARED_STATEMENTS);
    const batcher = this.batcher!;
    const ask = () => batcher.rows(query, statement);
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

  /** At the end of a transaction that writes for a user: lets `rowsFor` know. */
  async mark(db: EntityManager, user_id: number): Promise<void> {
    if (this.standby) await this.run(db, [bind(MARK_WRITES, [[user_id]])]);
  }

  /** Sends the statements of a write at once. Writes that lock the same row wait for one another here, and share a transaction. */
  async write<Result>(write: Write<Result>, lock?: Lock): Promise<Result> {
    if (!this.pool) throw new NotConnected();
    return this.around ? this.around('transaction', () => this.send(write, lock)) : this.send(write, lock);
  }

  private async send<Result>({ statements, result }: Write<Result>, lock: Lock | undefined): Promise<Result> {
    const prepared = this.settings.DATABASE_PREPARED_STATEMENTS;
    const queries = statements.map(({ statement, values }) => queryOf(statement, values, prepared));
    const rows = lock ? this.writeQueues!.run(lock, queries) : inTransaction(this.pool!, queries);
    if (this.around)
      for (const { statement } of statements) this.around(statement.name, () => rows).catch(() => undefined);
    return result(await rows);
  }

  /**
   * A transaction that a throw rolls back. As TypeORM's own, but for a connection that no longer answers: its ROLLBACK would wait behind the query that hangs, and
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

  /** Sends prepared statements inside of a transaction, at once; the rows of each. */
  async run<Statements extends BoundStatement[]>(
    db: EntityManager,
    statements: [...Statements],
  ): Promise<RowsOf<Statements>> {
    const runner = db.queryRunner!;
    // Its connection may be in use by somebody else.
    if (runner.isReleased) throw new QueryRunnerAlreadyReleasedError();
    const client = (await runner.connect()) as PoolClient;
    const rows = statements.map(({ statement, values }) => {
      const query = queryOf(statement, values, this.settings.DATABASE_PREPARED_STATEMENTS);
      const ask = async () => (await client.query(query)).rows as unknown[];
      return this.around ? this.around(statement.name, ask) : ask();
    });
    return (await Promise.all(rows)) as RowsOf<Statements>;
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
