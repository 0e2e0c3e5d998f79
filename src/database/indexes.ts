import type { QueryRunner } from 'typeorm';

// For migrations without a transaction: the table is read and written meanwhile.

/** Waits for other transactions as long as it takes, since nobody waits for it; what an interrupted try left is replaced. */
export async function buildIndex(db: QueryRunner, name: string, on: string): Promise<void> {
  const [found] = (await db.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, [
    name,
  ])) as [{ indisvalid: boolean } | undefined];
  if (found?.indisvalid) return;
  const [{ lock_timeout }] = (await db.query(`SHOW lock_timeout`)) as [{ lock_timeout: string }];
  await db.query(`SET lock_timeout = 0`);
  await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  await db.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
  await db.query(`SET lock_timeout = '${lock_timeout}'`);
}

/** That of a table that an operator has partitioned cannot go concurrently; it goes in an instant. */
export async function dropIndex(db: QueryRunner, name: string): Promise<void> {
  const [found] = (await db.query(`SELECT relkind FROM pg_class WHERE oid = to_regclass($1)`, [name])) as [
    { relkind: string } | undefined,
  ];
  if (found) await db.query(`DROP INDEX ${found.relkind === 'I' ? '' : 'CONCURRENTLY'} ${name}`);
}
