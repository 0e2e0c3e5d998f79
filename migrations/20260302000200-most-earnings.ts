import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MostEarnings20260302000200 implements MigrationInterface {
  name = 'MostEarnings20260302000200';

  async up(db: QueryRunner) {
    // NOT VALID: the next migration reads the table, without a lock that anybody meets.
    await db.query(
      `ALTER TABLE game_earnings ADD CONSTRAINT game_earnings_amount_max CHECK (amount <= 9007199254740991) NOT VALID`,
    );
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE game_earnings DROP CONSTRAINT game_earnings_amount_max`);
  }
}
