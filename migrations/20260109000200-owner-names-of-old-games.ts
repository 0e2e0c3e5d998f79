import type { MigrationInterface, QueryRunner } from 'typeorm';

const ROWS_AT_ONCE = 10_000;

/** Not one transaction, so that no row is locked for long; each step can be taken again where a try was given up. */
export class OwnerNamesOfOldGames20260109000200 implements MigrationInterface {
  name = 'OwnerNamesOfOldGames20260109000200';
  transaction = false;

  async up(db: QueryRunner) {
    for (let done: string | null = '0'; done !== null; done = await fillAfter(db, done));
    // NOT NULL alone would read the table while nobody else can.
    await db.query(`
      ALTER TABLE games
        DROP CONSTRAINT IF EXISTS games_owner_name_given,
        ADD CONSTRAINT games_owner_name_given CHECK (owner_name IS NOT NULL) NOT VALID`);
    await db.query(`ALTER TABLE games VALIDATE CONSTRAINT games_owner_name_given`);
    await db.query(`ALTER TABLE games ALTER owner_name SET NOT NULL`);
    await db.query(`ALTER TABLE games DROP CONSTRAINT games_owner_name_given`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE games ALTER owner_name DROP NOT NULL`);
  }
}

/** Fills the games that follow; answers the last of them, null if there are none. */
async function fillAfter(db: QueryRunner, done: string): Promise<string | null> {
  const [{ last }] = (await db.query(
    `SELECT max(id)::text AS last FROM (SELECT id FROM games WHERE id > $1 ORDER BY id LIMIT ${ROWS_AT_ONCE}) next`,
    [done],
  )) as [{ last: string | null }];
  // The owners first, as whoever renames one locks them; what their names are is read after that.
  await db.query(
    `WITH owners AS MATERIALIZED (
       SELECT u.id, u.username FROM users u
       WHERE u.id IN (SELECT user_id FROM games WHERE id > $1 AND id <= $2 AND owner_name IS NULL)
       ORDER BY u.id FOR SHARE)
     UPDATE games g SET owner_name = o.username FROM owners o
     WHERE o.id = g.user_id AND g.owner_name IS NULL AND g.id > $1 AND g.id <= $2`,
    [done, last],
  );
  return last;
}
