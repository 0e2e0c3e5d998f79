import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A receiver that fails gets no other delivery until the pause ends. */
export class WebhookPauses20261125100500 implements MigrationInterface {
  name = 'WebhookPauses20261125100500';

  async up(db: QueryRunner) {
    await db.query('ALTER TABLE webhooks ADD COLUMN paused_until timestamptz');
  }

  async down(db: QueryRunner) {
    await db.query('ALTER TABLE webhooks DROP COLUMN paused_until');
  }
}
