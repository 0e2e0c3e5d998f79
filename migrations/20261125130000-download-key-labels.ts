import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/**
 * Adds download keys that sellers create without an owner, and the indexes that list keys by game and, for
 * launchers, by account.
 */
export class DownloadKeyLabels20261125130000 implements MigrationInterface {
  name = 'DownloadKeyLabels20261125130000';
  // Indexes are built CONCURRENTLY, without blocking writes to keys, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await db.query(`ALTER TABLE download_keys ADD COLUMN IF NOT EXISTS label text`);
    await buildIndex(
      db,
      'download_keys_without_purchase_idx',
      'download_keys (game_id, id) WHERE purchase_id IS NULL',
    );
    await buildIndex(
      db,
      'download_keys_unclaimed_idx',
      `download_keys (game_id)
       WHERE purchase_id IS NULL AND email IS NULL AND user_id IS NULL AND revoked_at IS NULL`,
    );
    await buildIndex(
      db,
      'download_keys_newest_of_account_idx',
      `download_keys (account_id, created_at, id) WHERE account_id IS NOT NULL AND revoked_at IS NULL`,
    );
  }

  async down(db: QueryRunner) {
    await db.query(`DROP INDEX download_keys_newest_of_account_idx`);
    await db.query(`DROP INDEX download_keys_unclaimed_idx`);
    await db.query(`DROP INDEX download_keys_without_purchase_idx`);
    await db.query(`ALTER TABLE download_keys DROP label`);
  }
}
