import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeyNetworksChecked20260306000200 implements MigrationInterface {
  name = 'KeyNetworksChecked20260306000200';

  async up(db: QueryRunner) {
    await db.query(`ALTER TABLE api_keys VALIDATE CONSTRAINT api_keys_last_used_from_check`);
  }

  async down() {
    // What is valid stays valid.
  }
}
