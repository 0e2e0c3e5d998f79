import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IdempotencyKeys20260102000100 implements MigrationInterface {
  name = 'IdempotencyKeys20260102000100';

  async up(db: QueryRunner) {
    // No foreign key: rows live for a day, and a revoked credential cannot come back for its answers.
    await db.query(`
      CREATE TABLE idempotency_keys (
        credential text NOT NULL,
        key_hash bytea NOT NULL,
        fingerprint bytea NOT NULL,
        answer text,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (credential, key_hash)
      )`);
    await db.query(`CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at)`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE idempotency_keys`);
  }
}
