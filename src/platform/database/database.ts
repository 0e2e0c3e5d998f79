import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Client, Pool, PoolClient } from 'pg';
import {
  type DataSource,
  type EntityManager,
  type QueryRunner,
  QueryRunnerAlreadyReleasedError,
} from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { Clock } from '../config/clock';
import { Settings } from '../config/settings';
import { sendTogether } from './pool/pipeline';
import { StatementBatcher } from './pool/batching';
import { requireMigrated } from './migrate';
import { connectionProblem, requireSupportedServer } from './reachable';
import { classifyFault, isConnectionLost, isConnectionRejected, NotStarted } from './sqlstates';
import {
  bind,
  type BoundStatement,
  type RowsByStatement,
  rowsByStatement,
  type Statement,
  type Values,
} from './statement';

const POOL_CLOSE_TIMEOUT_MS = 2000;

/** Wraps work in a span. */
export type Trace = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** Runs statements: individually, as a write whose statements are sent at once, or in a transaction. */
@Injectable()
export class Database implements OnApplicationShutdown {
  private readonly log = new Logger(Database.name);
  /** Undefined when tracing is off. */
  trace: Trace | undefined;
  private pool: Pool | undefined;
  private batcher: StatementBatcher | undefined;
  private readonly isPrepared: boolean;
  private stopped = false;

  constructor(
    @InjectDataSource() private readonly source: DataSource,
    private readonly settings: Settings,
    private readonly clock: Clock,
  ) {
    this.isPrepared = settings.DATABASE_PREPARED_STATEMENTS;
  }

  get connected(): boolean {
    return this.pool !== undefined;
  }

  get connections(): { busy: number; idle: number; waiting: number } {
    if (!this.pool) return { busy: 0, idle: 0, waiting: 0 };
    const { totalCount, idleCount, waitingCount } = this.pool;
    return {
      busy: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + this.batcher!.waiting,
    };
  }

  /** Waits for the server. Fails if the operator must act, for example if the schema is old. */
  async connect(timeoutMs = Infinity): Promise<void> {
    const deadline = this.clock.now() + timeoutMs;
    for (let attempt = 0; !this.stopped; attempt++) {
      try {
        if (!this.source.isInitialized) await this.source.initialize();
        await this.use((this.source.driver as PostgresDriver).master as Pool);
        return;
      } catch (error) {
        const problem = connectionProblem(this.settings.DATABASE_URL, error);
        // A server that rejects the connection will do so again.
        const mayRecover = classifyFault(error) === 'unavailable' && !isConnectionRejected(error);
        if (!mayRecover || this.clock.now() > deadline) throw problem ?? error;
        if (attempt % 10 === 0 && timeoutMs === Infinity) this.log.warn(`Waiting: ${problem?.message}`);
        await sleep(500);
      }
    }
  }

  private async use(pool: Pool): Promise<void> {
    await requireSupportedServer(pool);
    await requireMigrated(this.source);
    if (this.stopped) return;
    this.batcher = new StatementBatcher(pool, this.clock, this.isPrepared);
    this.pool = pool;
  }

  /**
   * Runs a read, or one statement that changes rows, such as a claim: as a separate transaction, or within the one of
   * `manager`.
   */
  async rows<Row>(statement: Statement<Row>, values: Values, manager?: EntityManager): Promise<Row[]> {
    if (manager) return (await this.execute([bind(statement, values)], manager))(statement);
    if (!this.pool) throw new NotStarted();
    const batcher = this.batcher!;
    return this.withCallerStack(() =>
      this.traced(statement.name, () => batcher.rows(bind(statement, values))),
    );
  }

  async row<Row>(
    statement: Statement<Row>,
    values: Values,
    manager?: EntityManager,
  ): Promise<Row | undefined> {
    return (await this.rows(statement, values, manager))[0];
  }

  /**
   * Sends the statements in one round trip, as one transaction, or within the transaction of `manager`. Returns their
   * rows after the commit.
   */
  async execute(statements: BoundStatement[], manager?: EntityManager): Promise<RowsByStatement> {
    if (!this.pool) throw new NotStarted();
    const runner = manager?.queryRunner;
    const send = async () => {
      const rows = runner
        ? sendTogether(await openConnection(runner), statements, this.isPrepared)
        : this.batcher!.transaction(statements);
      if (this.trace)
        for (const { statement } of statements) this.trace(statement.name, () => rows).catch(() => undefined);
      return rows;
    };
    const rows = await this.withCallerStack(() => (runner ? send() : this.traced('transaction', send)));
    return rowsByStatement(statements, rows);
  }

  /**
   * A transaction that is rolled back if `work` throws. A connection that no longer responds is closed, and the server
   * rolls back; with TypeORM's own method, ROLLBACK would wait for the stuck query, and the connection would return to
   * the pool with it. At most two transactions with the same `concurrencyKey`, such as `user 7`, run at a time. With a `manager`,
   * `work` is a part of its transaction instead.
   */
  async transaction<Result>(
    work: (db: EntityManager) => Promise<Result>,
    { manager, concurrencyKey }: { manager?: EntityManager; concurrencyKey?: string } = {},
  ): Promise<Result> {
    if (manager) return work(manager);
    if (!this.pool) throw new NotStarted();
    const batcher = this.batcher!;
    return this.traced('transaction', () => batcher.inTransaction(concurrencyKey, () => this.transact(work)));
  }

  private async transact<Result>(work: (db: EntityManager) => Promise<Result>): Promise<Result> {
    const runner = this.source.createQueryRunner();
    const connection = (await runner.connect()) as Client;
    // The pool drops a released connection that has ended.
    const close = () => void connection.end();
    try {
      await runner.startTransaction();
      const result = await work(runner.manager);
      await runner.commitTransaction();
      return result;
    } catch (error) {
      if (isConnectionLost(error)) close();
      else if (!runner.isReleased) await runner.rollbackTransaction().catch(close);
      throw error;
    } finally {
      await runner.release();
    }
  }

  /** Outside production, gives an error the stack of the caller, because its own stack begins at a socket. */
  private async withCallerStack<T>(work: () => Promise<T>): Promise<T> {
    if (this.settings.NODE_ENV === 'production') return work();
    const caller = new Error();
    try {
      return await work();
    } catch (error) {
      if (error instanceof Error) error.stack = caller.stack!.replace(/^Error/, String(error));
      throw error;
    }
  }

  private traced<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.trace ? this.trace(name, work) : work();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.pool = undefined;
    const close = async () => {
      if (this.source.isInitialized) await this.source.destroy();
    };
    // A server that hangs doesn't close its connections, so the wait is limited.
    await Promise.race([close(), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }
}

async function openConnection(runner: QueryRunner): Promise<PoolClient> {
  // The pool may have assigned its connection to another request.
  if (runner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await runner.connect()) as PoolClient;
}
