import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

const OLD = 'download_keys_purchase_id_idx';
const OF_PURCHASE = 'WHERE purchase_id IS NOT NULL';

export class SalesByIndex20260305000300 implements MigrationInterface {
  name = 'SalesByIndex20260305000300';
  // CONCURRENTLY: purchases and keys are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(
      db,
      'purchase_games_newest_idx',
      'purchase_games (game_id, sold_at, purchase_id) WHERE sold_at IS NOT NULL',
    );
    // The newest key of a purchase and a game is the last of its entries, also where a bundle has a thousand keys.
    await buildIndex(
      db,
      'download_keys_purchase_id_game_id_idx',
      `download_keys (purchase_id, game_id, created_at, id) ${OF_PURCHASE}`,
    );
    await dropIndex(db, OLD);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX ${OLD} ON download_keys (purchase_id) ${OF_PURCHASE}`);
    await db.query(`DROP INDEX download_keys_purchase_id_game_id_idx`);
    await db.query(`DROP INDEX purchase_games_newest_idx`);
  }
}
