import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TokenGenerations20260201000300 implements MigrationInterface {
  name = 'TokenGenerations20260201000300';

  async up(db: QueryRunner) {
    // A JWT names the generation that it was made in: one more ends all that were made before.
    await db.query(`ALTER TABLE users ADD token_generation integer NOT NULL DEFAULT 0`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE users DROP token_generation`);
  }
}
