import { Pool } from 'pg';
import { pgTypes } from '../../src/platform/database/pg-types';

let pool: Pool | undefined;

/** Connections to the database of this test file, apart from those of the service. */
export function openPool(connectionString: string): void {
  pool = new Pool({ connectionString, types: pgTypes, max: 4 });
  // The database may be dropped before all of its connections are closed.
  pool.on('error', () => undefined);
}

export async function closePool(): Promise<void> {
  await pool?.end();
}

/** Queries the database directly, without the service. */
export async function sql<Row extends object = Record<string, unknown>>(
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await pool!.query(text, values)).rows as Row[];
}
