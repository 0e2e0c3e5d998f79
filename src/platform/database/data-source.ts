import { join } from 'node:path';
import type { ClientBase, PoolConfig } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions';
import type { Settings } from '../config/settings';
import { DatabaseClient } from './client';
import { Naming } from './naming';
import { pgTypes } from './pg-types';
import { NotStarted } from './sqlstates';

const compiled = join(__dirname, '..', '..', '..');

/** The options of every connection that serves requests. */
export const connectionOptions = {
  types: pgTypes,
  // These are timeouts of the client, because poolers reject timeouts of the connection. Their sum is below
  // the request's deadline of 2.3 s.
  connectionTimeoutMillis: 700,
  query_timeout: 1500,
  onConnect: (client: ClientBase): void =>
    void client.query(`SET lock_timeout = ${lockTimeoutMs()}`).catch(() => undefined),
  keepAlive: true,
  // A query that times out ends its connection, instead of returning to the pool with it.
  pipeline: true,
};

// Shorter than the query timeout, so that the server doesn't wait for a write whose client has given up. Not
// twice the wait for a connection, because reads then wait longer while the pool is exhausted.
const lockTimeoutMs = () => connectionOptions.query_timeout - 20;

/** TypeORM reads the entities when it first connects, and reports them as unknown until then. */
export class LateDataSource extends DataSource {
  override getMetadata(...target: Parameters<DataSource['getMetadata']>) {
    if (this.entityMetadatas.length === 0) throw new NotStarted();
    return super.getMetadata(...target);
  }
}

export function dataSourceOptions(
  settings: Pick<Settings, 'DATABASE_URL' | 'DATABASE_POOL_SIZE'>,
  connection: PoolConfig = connectionOptions,
): PostgresDataSourceOptions {
  return {
    type: 'postgres',
    url: settings.DATABASE_URL,
    entities: [join(compiled, 'src', '**', '*.entity.{js,ts}')],
    migrations: [join(compiled, 'migrations', '*.{js,ts}')],
    migrationsTransactionMode: 'each',
    namingStrategy: new Naming(),
    synchronize: false,
    installExtensions: false,
    parseInt8: true,
    applicationName: 'gamewharf',
    poolSize: settings.DATABASE_POOL_SIZE,
    extra: { ...connection, Client: DatabaseClient },
  };
}
