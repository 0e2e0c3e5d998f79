import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['purchases', 'download_keys', 'collections'];

/**
 * Tells IDs that an import brought from those that the service assigned. Where a row came from isn't known of older rows, so
 * imports may change all of them as before.
 */
export class ImportedIds20261125100200 implements MigrationInterface {
  name = 'ImportedIds20261125100200';

  async up(db: QueryRunner) {
    for (const table of TABLES) {
      await db.query(
        `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS imported_id boolean NOT NULL DEFAULT true`,
      );
      await db.query(`ALTER TABLE ${table} ALTER COLUMN imported_id SET DEFAULT false`);
    }
  }

  async down(db: QueryRunner) {
    for (const table of TABLES) await db.query(`ALTER TABLE ${table} DROP COLUMN imported_id`);
  }
}
