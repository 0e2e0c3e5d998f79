import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeysEndWithGrantsChecked20260201000500 implements MigrationInterface {
  name = 'KeysEndWithGrantsChecked20260201000500';

  async up(db: QueryRunner) {
    // In a transaction of its own: it reads the table under a lock that nobody meets.
    await db.query(`ALTER TABLE api_keys VALIDATE CONSTRAINT api_keys_grant_id_fkey`);
  }

  async down() {
    // What is valid stays valid.
  }
}
