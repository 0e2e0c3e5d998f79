import type { MigrationInterface, QueryRunner } from 'typeorm';

const grantKey = (onDelete: string) => `
  ALTER TABLE api_keys
    DROP CONSTRAINT api_keys_grant_id_fkey,
    ADD CONSTRAINT api_keys_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants ON DELETE ${onDelete} NOT VALID`;

export class KeysEndWithGrants20260201000400 implements MigrationInterface {
  name = 'KeysEndWithGrants20260201000400';

  async up(db: QueryRunner) {
    // With SET NULL an application's key became the user's own when the application's owner was deleted by SQL.
    await db.query(grantKey('CASCADE'));
  }

  async down(db: QueryRunner) {
    await db.query(grantKey('SET NULL'));
    await db.query(`ALTER TABLE api_keys VALIDATE CONSTRAINT api_keys_grant_id_fkey`);
  }
}
