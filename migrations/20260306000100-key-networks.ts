import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeyNetworks20260306000100 implements MigrationInterface {
  name = 'KeyNetworks20260306000100';

  async up(db: QueryRunner) {
    // A network, and never one client's address.
    await db.query(`
      ALTER TABLE api_keys
        ADD last_used_from cidr,
        ADD CONSTRAINT api_keys_last_used_from_check
          CHECK (masklen(last_used_from) <= CASE family(last_used_from) WHEN 4 THEN 24 ELSE 48 END) NOT VALID`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE api_keys DROP last_used_from`);
  }
}
