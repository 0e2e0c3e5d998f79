import type { QueryRunner } from 'typeorm';

/**
 * DROP INDEX without blocking other clients. PostgreSQL doesn't support that for a partitioned table, but
 * dropping its index takes only a moment.
 */
export async function dropIndex(db: QueryRunner, name: string) {
  const [found] = (await db.query(
    `SELECT relkind = 'I' AS partitioned FROM pg_class WHERE oid = to_regclass($1)`,
    [name],
  )) as [{ partitioned: boolean } | undefined];
  if (found) await db.query(`DROP INDEX ${found.partitioned ? '' : 'CONCURRENTLY'} ${name}`);
}
