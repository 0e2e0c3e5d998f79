import type { MigrationInterface, QueryRunner } from 'typeorm';

const ROWS_AT_ONCE = 10_000;

/** Not one transaction, so that no row is locked for long; an interrupted run can be repeated. */
export class AccountsOfOldDownloadKeys20260203000300 implements MigrationInterface {
  name = 'AccountsOfOldDownloadKeys20260203000300';
  transaction = false;

  async up(db: QueryRunner) {
    for (let done: string | null = '0'; done !== null; done = await fillAfter(db, done));
  }

  async down() {
    // The columns go with the migration before.
  }
}

/** Fills the next keys by id; returns the id of the last one, null where there are none. */
async function fillAfter(db: QueryRunner, done: string): Promise<string | null> {
  const [{ last }] = (await db.query(
    `SELECT max(id)::text AS last
     FROM (SELECT id FROM download_keys WHERE id > $1 ORDER BY id LIMIT ${ROWS_AT_ONCE}) next`,
    [done],
  )) as [{ last: string | null }];
  if (last === null) return null;
  const wanted = `k.id > $1 AND k.id <= $2 AND k.account_id IS NULL AND k.purchase_email IS NULL`;
  await db.query(
    `UPDATE download_keys k SET account_id = coalesce(k.user_id, p.user_id), purchase_email = lower(p.email)
     FROM purchases p WHERE p.id = k.purchase_id AND ${wanted}`,
    [done, last],
  );
  await db.query(
    `UPDATE download_keys k SET account_id = k.user_id
     WHERE k.purchase_id IS NULL AND k.user_id IS NOT NULL AND ${wanted}`,
    [done, last],
  );
  return last;
}
