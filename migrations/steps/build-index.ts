import type { QueryRunner } from 'typeorm';

/**
 * CREATE INDEX without blocking other clients; `on` begins with the table. Replaces an invalid index of an
 * interrupted attempt and keeps a valid one. PostgreSQL can't build an index of a partitioned table
 * concurrently, so each partition gets its own, and these are attached to the table's index.
 */
export async function buildIndex(db: QueryRunner, name: string, on: string, { unique = false } = {}) {
  const found = await indexOf(db, name);
  if (found?.valid) return;
  const [table = ''] = on.split(' ', 1);
  const what = on.slice(table.length);
  const create = unique ? 'CREATE UNIQUE INDEX' : 'CREATE INDEX';
  if (!(await isPartitioned(db, table))) {
    await withoutLockTimeout(db, async () => {
      await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await db.query(`${create} CONCURRENTLY ${name} ON ${table}${what}`);
    });
    return;
  }
  // The table's own index first, so that new partitions get one. It is valid once all partitions have one.
  if (!found) await db.query(`${create} ${name} ON ONLY ${table}${what}`);
  for (const partition of await partitionsOf(db, table)) {
    const part = name.startsWith(table) ? partition + name.slice(table.length) : `${partition}_${name}`;
    if (await hasPart(db, name, partition)) continue;
    await buildIndex(db, part, partition + what, { unique });
    await db.query(`ALTER INDEX ${name} ATTACH PARTITION ${part}`);
  }
}

const rows = async <Row>(db: QueryRunner, text: string, ...values: string[]) =>
  (await db.query(text, values)) as Row[];

const indexOf = async (db: QueryRunner, name: string) =>
  (
    await rows<{ valid: boolean }>(
      db,
      `SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)`,
      name,
    )
  )[0];

const isPartitioned = async (db: QueryRunner, table: string) =>
  (await rows(db, `SELECT FROM pg_partitioned_table WHERE partrelid = to_regclass($1)`, table)).length > 0;

const partitionsOf = async (db: QueryRunner, table: string) =>
  (
    await rows<{ name: string }>(
      db,
      `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = to_regclass($1) ORDER BY 1`,
      table,
    )
  ).map(({ name }) => name);

const hasPart = async (db: QueryRunner, index: string, partition: string) =>
  (
    await rows(
      db,
      `SELECT FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid
       WHERE inhparent = to_regclass($1) AND indrelid = to_regclass($2)`,
      index,
      partition,
    )
  ).length > 0;

/** The statement waits for other transactions without a timeout, because nothing waits for it. */
async function withoutLockTimeout(db: QueryRunner, work: () => Promise<void>) {
  const [{ lock_timeout }] = (await db.query(`SHOW lock_timeout`)) as [{ lock_timeout: string }];
  await db.query(`SET lock_timeout = 0`);
  try {
    await work();
  } finally {
    await db.query(`SET lock_timeout = '${lock_timeout}'`);
  }
}
