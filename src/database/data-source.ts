import { join } from 'node:path';
import { types, type PoolConfig } from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions';
import type { Settings } from '../config/settings';
import { DatabaseClient } from './client';
import { listOf } from './packed-row';

const { INT8, NUMERIC, TIMESTAMPTZ } = types.builtins;
const INT8_ARRAY = 1016;
const TEXT_ARRAY = 1009;

const parseTextArray = types.getTypeParser(TEXT_ARRAY as never) as (text: string) => string[];

// Ids and counts are numbers: CHECK constraints keep them below 2^53. Timestamps stay text, which is rearranged for the
// wire: a Date would cost more than the rest of the row.
const parsers: Record<number, (text: string) => unknown> = {
  [INT8]: Number,
  [NUMERIC]: Number,
  [TIMESTAMPTZ]: (text) => text,
  // Arrays without quotes are split, which is faster than pg's parser.
  [TEXT_ARRAY]: (text) => (/["\\]|NULL/.test(text) ? parseTextArray(text) : listOf(text)),
  [INT8_ARRAY]: (text) => listOf(text).map(Number),
};

export const pgTypes = {
  getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
    return (format !== 'binary' && parsers[oid]) || types.getTypeParser(oid, format as 'text');
  },
};

const compiled = join(__dirname, '..', '..');

/** Of every connection that serves requests. */
export const connectionOptions = {
  types: pgTypes,
  // Timeouts of the client, as poolers refuse those of the connection. Their sum is below the request's deadline of 2.3 s.
  connectionTimeoutMillis: 700,
  query_timeout: 1500,
  keepAlive: true,
  // A statement may be sent before the one ahead of it was answered: see Database.run.
  pipeline: true,
};

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
    synchronize: false,
    installExtensions: false,
    parseInt8: true,
    applicationName: 'gamewharf',
    poolSize: settings.DATABASE_POOL_SIZE,
    extra: { ...connection, Client: DatabaseClient },
  };
}

/** TypeORM makes a Date of each timestamp of an entity. Here it stays text, as the entities declare it. */
export function newDataSource(options: DataSourceOptions): DataSource {
  const source = new DataSource(options);
  const { driver } = source;
  const hydrate = driver.prepareHydratedValue.bind(driver);
  driver.prepareHydratedValue = (value, column) =>
    column.type === 'timestamptz' ? (value as unknown) : (hydrate(value, column) as unknown);
  return source;
}
