import type { INestApplication } from '@nestjs/common';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';

/** The connections of an app, for tests that block or cut them. */
export const poolOf = (app: INestApplication) =>
  (app.get(DataSource).driver as PostgresDriver).master as Pool;
