import type { MigrationInterface, QueryRunner } from 'typeorm';

const ROWS_AT_ONCE = 10_000;

/** Not one transaction, so that no row is locked for long; an interrupted run can be repeated. */
export class SoldAtOfOldPurchases20260305000200 implements MigrationInterface {
  name = 'SoldAtOfOldPurchases20260305000200';
  transaction = false;

  async up(db: QueryRunner) {
    for (let done: string | null = '0'; done !== null; done = await fillAfter(db, done));
  }

  async down() {
    // The column goes with the migration before.
  }
}

/** Fills the rows of the next purchases by id; returns the id of the last one, null where there are none. */
async function fillAfter(db: QueryRunner, done: string): Promise<string | null> {
  const [{ last }] = (await db.query(
    `SELECT max(purchase_id)::text AS last
     FROM (SELECT purchase_id FROM purchase_games WHERE purchase_id > $1 ORDER BY purchase_id LIMIT ${ROWS_AT_ONCE}) next`,
    [done],
  )) as [{ last: string | null }];
  if (last === null) return null;
  await db.query(
    `UPDATE purchase_games pg SET sold_at = p.created_at
     FROM purchases p
     WHERE p.id = pg.purchase_id AND p.status IN ('complete', 'refunded') AND pg.sold_at IS NULL
       AND pg.purchase_id > $1 AND pg.purchase_id <= $2`,
    [done, last],
  );
  return last;
}
