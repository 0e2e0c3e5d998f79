import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IdempotencyKeys20261124801300 implements MigrationInterface {
  name = 'IdempotencyKeys20261124801300';

  async up(db: QueryRunner) {
    // No foreign keys: rows live for a day. user_id is the owner of the credential at the time of the
    // request, because an import may give an API key to another user.
    await db.query(`
      CREATE TABLE idempotency_keys (
        credential text NOT NULL,
        key_hash bytea NOT NULL,
        fingerprint bytea NOT NULL,
        answer text,
        created_at timestamptz NOT NULL DEFAULT now(),
        user_id bigint,
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (credential, key_hash)
      );
      CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at);
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE idempotency_keys`);
  }
}
