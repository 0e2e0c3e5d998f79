import type { MigrationInterface, QueryRunner } from 'typeorm';

/** 0.1 counted the writes of each user for reads from a standby. The baseline does not create the table. */
export class DropUserWrites20261125000100 implements MigrationInterface {
  name = 'DropUserWrites20261125000100';

  async up(db: QueryRunner) {
    await db.query(`DROP TABLE IF EXISTS user_writes`);
  }

  async down() {
    // Only a store of 0.1 had the table, for reads from a standby.
  }
}
