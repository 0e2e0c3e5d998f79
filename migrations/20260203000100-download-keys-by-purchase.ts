import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

export class DownloadKeysByPurchase20260203000100 implements MigrationInterface {
  name = 'DownloadKeysByPurchase20260203000100';
  // CONCURRENTLY: keys are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(
      db,
      'download_keys_purchase_id_idx',
      'download_keys (purchase_id) WHERE purchase_id IS NOT NULL',
    );
  }

  async down(db: QueryRunner) {
    await db.query(`DROP INDEX download_keys_purchase_id_idx`);
  }
}
