import type { MigrationInterface, QueryRunner } from 'typeorm';

export class UserWrites20260103000100 implements MigrationInterface {
  name = 'UserWrites20260103000100';

  async up(db: QueryRunner) {
    // No foreign key: the row of a user who is gone harms nobody. Room on each page, so that a row is rewritten in place.
    await db.query(`
      CREATE TABLE user_writes (
        user_id bigint CONSTRAINT user_writes_pkey PRIMARY KEY,
        writes bigint NOT NULL DEFAULT 1
      ) WITH (fillfactor = 50)`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE user_writes`);
  }
}
