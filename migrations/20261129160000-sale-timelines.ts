import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Records when and by whom a sale was refunded, and when its keys were claimed and last used. Earlier sales
 * lack these values.
 */
export class SaleTimelines20261129160000 implements MigrationInterface {
  name = 'SaleTimelines20261129160000';

  async up(db: QueryRunner) {
    await db.query(`
      -- Not columns of purchases: few are refunded.
      CREATE TABLE refunds (
        purchase_id bigint CONSTRAINT refunds_pkey PRIMARY KEY
          CONSTRAINT refunds_purchase_id_fkey REFERENCES purchases ON DELETE CASCADE,
        refunded_at timestamptz NOT NULL DEFAULT now(),
        user_id bigint CONSTRAINT refunds_user_id_fkey REFERENCES users ON DELETE SET NULL
      );
      CREATE INDEX refunds_user_id_idx ON refunds (user_id) WHERE user_id IS NOT NULL;

      ALTER TABLE download_keys ADD COLUMN claimed_at timestamptz, ADD COLUMN last_download_at timestamptz;
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      ALTER TABLE download_keys DROP COLUMN claimed_at, DROP COLUMN last_download_at;
      DROP TABLE refunds;
    `);
  }
}
