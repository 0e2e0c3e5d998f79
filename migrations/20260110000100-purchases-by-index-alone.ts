import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

const BY_ADDRESS = 'purchase_games_game_id_email_idx';
const BY_ACCOUNT = 'purchase_games_user_id_game_id_idx';
const ADDRESS = 'purchase_games (game_id, email)';
const ACCOUNT = 'purchase_games (user_id, game_id)';
const WITH_ACCOUNT = 'WHERE user_id IS NOT NULL';

/** A lookup reads the rows of purchases, and of purchase_games only what its indexes hold. */
export class PurchasesByIndexAlone20260110000100 implements MigrationInterface {
  name = 'PurchasesByIndexAlone20260110000100';
  // CONCURRENTLY: purchases are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    const holding = 'INCLUDE (purchase_id)';
    await buildIndex(db, 'purchase_games_game_id_email_purchase_id_idx', `${ADDRESS} ${holding}`);
    await buildIndex(
      db,
      'purchase_games_user_id_game_id_purchase_id_idx',
      `${ACCOUNT} ${holding} ${WITH_ACCOUNT}`,
    );
    await dropIndex(db, BY_ADDRESS);
    await dropIndex(db, BY_ACCOUNT);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX ${BY_ACCOUNT} ON ${ACCOUNT} ${WITH_ACCOUNT}`);
    await db.query(`CREATE INDEX ${BY_ADDRESS} ON ${ADDRESS}`);
    await db.query(`DROP INDEX purchase_games_user_id_game_id_purchase_id_idx`);
    await db.query(`DROP INDEX purchase_games_game_id_email_purchase_id_idx`);
  }
}
