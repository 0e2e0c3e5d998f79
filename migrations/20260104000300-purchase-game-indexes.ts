import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PurchaseGameIndexes20260104000300 implements MigrationInterface {
  name = 'PurchaseGameIndexes20260104000300';
  // CONCURRENTLY: purchases are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await build(db, 'purchase_games_game_id_email_idx', '(game_id, email)');
    await build(db, 'purchase_games_user_id_game_id_idx', '(user_id, game_id) WHERE user_id IS NOT NULL');
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS purchase_games_game_id_idx`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX purchase_games_game_id_idx ON purchase_games (game_id)`);
    await db.query(`DROP INDEX purchase_games_user_id_game_id_idx`);
    await db.query(`DROP INDEX purchase_games_game_id_email_idx`);
  }
}

/** Waits for other transactions as long as it takes, since nobody waits for it; what an interrupted try left is replaced. */
async function build(db: QueryRunner, name: string, on: string) {
  const [found] = (await db.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, [
    name,
  ])) as [{ indisvalid: boolean } | undefined];
  if (found?.indisvalid) return;
  const [{ lock_timeout }] = (await db.query(`SHOW lock_timeout`)) as [{ lock_timeout: string }];
  await db.query(`SET lock_timeout = 0`);
  await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  await db.query(`CREATE INDEX CONCURRENTLY ${name} ON purchase_games ${on}`);
  await db.query(`SET lock_timeout = '${lock_timeout}'`);
}
