import type { QueryRunner } from 'typeorm';

/**
 * CREATE INDEX without a lock that anybody meets. It waits for other transactions as long as it takes, since nobody waits
 * for it. What an interrupted try left is replaced; an index that is there is left alone.
 */
export async function buildIndex(db: QueryRunner, name: string, on: string, { unique = false } = {}) {
  const [found] = (await db.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, [
    name,
  ])) as [{ indisvalid: boolean } | undefined];
  if (found?.indisvalid) return;
  const [{ lock_timeout }] = (await db.query(`SHOW lock_timeout`)) as [{ lock_timeout: string }];
  await db.query(`SET lock_timeout = 0`);
  await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  await db.query(`CREATE ${unique ? 'UNIQUE ' : ''}INDEX CONCURRENTLY ${name} ON ${on}`);
  await db.query(`SET lock_timeout = '${lock_timeout}'`);
}
