import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MostEarningsChecked20260302000300 implements MigrationInterface {
  name = 'MostEarningsChecked20260302000300';

  async up(db: QueryRunner) {
    await db.query(`ALTER TABLE game_earnings VALIDATE CONSTRAINT game_earnings_amount_max`);
  }

  async down() {
    // The constraint goes with the migration before.
  }
}
