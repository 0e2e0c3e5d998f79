import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IdempotencyUsers20260202000100 implements MigrationInterface {
  name = 'IdempotencyUsers20260202000100';

  async up(db: QueryRunner) {
    // Whose the key was then: an import may give a key to another user. NULL: written by the version before, for a day.
    await db.query(`ALTER TABLE idempotency_keys ADD user_id bigint`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE idempotency_keys DROP user_id`);
  }
}
