import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AccountPages20260102000600 implements MigrationInterface {
  name = 'AccountPages20260102000600';

  async up(db: QueryRunner) {
    // notice: what the next page shows once, sealed under the session's token, which is not stored.
    await db.query(`
      CREATE TABLE sessions (
        token_hash bytea CONSTRAINT sessions_pkey PRIMARY KEY,
        user_id bigint NOT NULL CONSTRAINT sessions_user_id_fkey REFERENCES users ON DELETE CASCADE,
        created_at timestamptz NOT NULL DEFAULT now(),
        seen_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        notice bytea,
        CONSTRAINT sessions_token_hash_check CHECK (octet_length(token_hash) = 32)
      )`);
    await db.query(`CREATE INDEX sessions_user_id_idx ON sessions (user_id)`);
    await db.query(`CREATE INDEX sessions_expires_at_idx ON sessions (expires_at)`);
    await db.query(`
      CREATE TABLE attempts (
        subject bytea CONSTRAINT attempts_pkey PRIMARY KEY,
        failures integer NOT NULL,
        blocked_until timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        CONSTRAINT attempts_subject_check CHECK (octet_length(subject) = 32)
      )`);
    await db.query(`CREATE INDEX attempts_expires_at_idx ON attempts (expires_at)`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE attempts`);
    await db.query(`DROP TABLE sessions`);
  }
}
