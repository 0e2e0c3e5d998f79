import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Pool, QueryResultRow } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { Settings } from '../config/settings';
import { requireMigrated } from './migrate';
import { connectionProblem, requireSupportedServer } from './reachable';
import { faultOf, NotConnected } from './sqlstates';
import type { Statement } from './statement';

/** Statements outside of transactions go straight to the pool; transactions are TypeORM's. */
@Injectable()
export class Database implements OnApplicationShutdown {
  private readonly log = new Logger(Database.name);
  private pool: Pool | undefined;
  private stopped = false;

  constructor(
    @InjectDataSource() readonly source: DataSource,
    private readonly settings: Settings,
  ) {}

  get connected(): boolean {
    return this.pool !== undefined;
  }

  /** Waits for the server as long as it takes; a schema that is too old is the operator's to mend. */
  async connect(): Promise<void> {
    for (let attempt = 0; !this.stopped; attempt++) {
      try {
        await this.source.initialize();
        break;
      } catch (error) {
        const problem = connectionProblem(this.settings.DATABASE_URL, error);
        // A server that is there and refuses us will go on doing so.
        if (faultOf(error) !== 'unavailable') throw problem ?? error;
        if (attempt % 10 === 0) this.log.warn(`Waiting: ${problem?.message}`);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
    if (this.stopped) return;
    const pool = (this.source.driver as PostgresDriver).master as Pool;
    await requireSupportedServer(pool);
    await requireMigrated(this.source);
    this.pool = pool;
  }

  async rows<Row extends QueryResultRow>({ name, text }: Statement, values: unknown[]): Promise<Row[]> {
    if (!this.pool) throw new NotConnected();
    const prepared = this.settings.DATABASE_PREPARED_STATEMENTS ? name : undefined;
    return (await this.pool.query<Row>({ name: prepared, text, values })).rows;
  }

  async row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined> {
    return (await this.rows<Row>(statement, values))[0];
  }

  transaction<Result>(work: (db: EntityManager) => Promise<Result>): Promise<Result> {
    if (!this.pool) throw new NotConnected();
    return this.source.transaction(work);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.pool = undefined;
    if (this.source.isInitialized) await this.source.destroy();
  }
}
