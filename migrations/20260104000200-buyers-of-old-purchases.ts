import type { MigrationInterface, QueryRunner } from 'typeorm';

const ROWS_AT_ONCE = 10_000;

/** Not one transaction, so that no row is locked for long; each step can be taken again where a try was given up. */
export class BuyersOfOldPurchases20260104000200 implements MigrationInterface {
  name = 'BuyersOfOldPurchases20260104000200';
  transaction = false;

  async up(db: QueryRunner) {
    for (let done: string | null = '0'; done !== null; done = await fillAfter(db, done));
    // NOT NULL alone would read the table while nobody else can.
    await db.query(`
      ALTER TABLE purchase_games
        DROP CONSTRAINT IF EXISTS purchase_games_email_given,
        ADD CONSTRAINT purchase_games_email_given CHECK (email IS NOT NULL) NOT VALID`);
    await db.query(`ALTER TABLE purchase_games VALIDATE CONSTRAINT purchase_games_email_given`);
    await db.query(`ALTER TABLE purchase_games ALTER email SET NOT NULL`);
    await db.query(`ALTER TABLE purchase_games DROP CONSTRAINT purchase_games_email_given`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE purchase_games ALTER email DROP NOT NULL`);
  }
}

/** Fills the rows of the purchases that follow; answers the last of them, null if there are none. */
async function fillAfter(db: QueryRunner, done: string): Promise<string | null> {
  const [{ last }] = (await db.query(
    `SELECT max(purchase_id)::text AS last
     FROM (SELECT purchase_id FROM purchase_games WHERE purchase_id > $1 ORDER BY purchase_id LIMIT ${ROWS_AT_ONCE}) next`,
    [done],
  )) as [{ last: string | null }];
  await db.query(
    `UPDATE purchase_games pg SET user_id = p.user_id, email = lower(p.email)
     FROM purchases p
     WHERE p.id = pg.purchase_id AND pg.email IS NULL AND pg.purchase_id > $1 AND pg.purchase_id <= $2`,
    [done, last],
  );
  return last;
}
