import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

export class SoldKeys20260305001100 implements MigrationInterface {
  name = 'SoldKeys20260305001100';
  // CONCURRENTLY: keys are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // How many of the newest keys that were sold are claimed, without reading the keys.
    await buildIndex(
      db,
      'download_keys_sold_idx',
      'download_keys (game_id, created_at) INCLUDE (user_id) WHERE purchase_id IS NOT NULL AND revoked_at IS NULL',
    );
  }

  async down(db: QueryRunner) {
    await db.query(`DROP INDEX download_keys_sold_idx`);
  }
}
