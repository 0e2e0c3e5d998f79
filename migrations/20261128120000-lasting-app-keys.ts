import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lets an app's key without a fixed expiry be revoked with the other tokens of its sign-in. */
export class LastingAppKeys20261128120000 implements MigrationInterface {
  name = 'LastingAppKeys20261128120000';

  async up(db: QueryRunner) {
    await db.query('ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS family_id uuid');
  }

  async down(db: QueryRunner) {
    await db.query('ALTER TABLE api_keys DROP COLUMN family_id');
  }
}
