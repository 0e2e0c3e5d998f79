import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

export class PurchaseGameIndexes20260104000300 implements MigrationInterface {
  name = 'PurchaseGameIndexes20260104000300';
  // CONCURRENTLY: purchases are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, 'purchase_games_game_id_email_idx', 'purchase_games (game_id, email)');
    await buildIndex(
      db,
      'purchase_games_user_id_game_id_idx',
      'purchase_games (user_id, game_id) WHERE user_id IS NOT NULL',
    );
    await dropIndex(db, 'purchase_games_game_id_idx');
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX purchase_games_game_id_idx ON purchase_games (game_id)`);
    await db.query(`DROP INDEX purchase_games_user_id_game_id_idx`);
    await db.query(`DROP INDEX purchase_games_game_id_email_idx`);
  }
}
