import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Reads no longer go to a standby, so no write has to be counted for them. */
export class DropUserWrites20261125000100 implements MigrationInterface {
  name = 'DropUserWrites20261125000100';

  async up(db: QueryRunner) {
    await db.query(`DROP TABLE IF EXISTS user_writes`);
  }

  async down(db: QueryRunner) {
    await db.query(`
      CREATE TABLE user_writes (
        user_id bigint CONSTRAINT user_writes_pkey PRIMARY KEY,
        writes bigint NOT NULL DEFAULT 1
      ) WITH (fillfactor = 50)`);
  }
}
