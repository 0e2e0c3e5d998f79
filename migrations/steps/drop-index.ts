import type { QueryRunner } from 'typeorm';

/** DROP INDEX without a lock that anybody meets. PostgreSQL refuses that for a partitioned table, whose index goes in a moment. */
export async function dropIndex(db: QueryRunner, name: string) {
  const [found] = (await db.query(
    `SELECT relkind = 'I' AS partitioned FROM pg_class WHERE oid = to_regclass($1)`,
    [name],
  )) as [{ partitioned: boolean } | undefined];
  if (found) await db.query(`DROP INDEX ${found.partitioned ? '' : 'CONCURRENTLY'} ${name}`);
}
