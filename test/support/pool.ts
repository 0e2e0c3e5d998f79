import type { INestApplication } from '@nestjs/common';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { until } from './time';

/** The connections of an app, for tests that block or cut them. */
export const getPool = (app: INestApplication) =>
  (app.get(DataSource).driver as PostgresDriver).master as Pool;

/** Opens connections for tests of concurrency: on a busy machine, a new one may take longer than a request waits for it. */
export const openConnections = (app: INestApplication, count: number) =>
  until(async () => {
    const pool = getPool(app);
    const opened = await Promise.allSettled(Array.from({ length: count }, () => pool.connect()));
    for (const result of opened) if (result.status === 'fulfilled') result.value.release();
    return pool.totalCount >= count;
  });
