import type { MigrationInterface, QueryRunner } from 'typeorm';

export class SignIn20261124801000 implements MigrationInterface {
  name = 'SignIn20261124801000';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE TABLE sessions (
        token_hash bytea CONSTRAINT sessions_pkey PRIMARY KEY,
        user_id bigint NOT NULL CONSTRAINT sessions_user_id_fkey REFERENCES users ON DELETE CASCADE,
        created_at timestamptz NOT NULL DEFAULT now(),
        seen_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        -- What the next page shows once, sealed with the session's token, which is not stored.
        notice bytea,
        CONSTRAINT sessions_token_hash_check CHECK (octet_length(token_hash) = 32)
      );
      CREATE INDEX sessions_user_id_idx ON sessions (user_id);
      CREATE INDEX sessions_expires_at_idx ON sessions (expires_at);

      -- Failed sign-ins, by the hash of a username or a network.
      CREATE TABLE attempts (
        subject bytea CONSTRAINT attempts_pkey PRIMARY KEY,
        failures integer NOT NULL,
        blocked_until timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        CONSTRAINT attempts_subject_check CHECK (octet_length(subject) = 32)
      );
      CREATE INDEX attempts_expires_at_idx ON attempts (expires_at);

      -- The keys that sign JWTs. The private key is sealed with API_KEY_PEPPER, which is never in the database.
      CREATE TABLE signing_keys (
        kid text CONSTRAINT signing_keys_pkey PRIMARY KEY,
        public_key bytea NOT NULL,
        private_key bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        signs_from timestamptz NOT NULL,
        token_lifetime integer NOT NULL,
        CONSTRAINT signing_keys_public_key_check CHECK (octet_length(public_key) = 32),
        CONSTRAINT signing_keys_token_lifetime_check CHECK (token_lifetime > 0)
      );
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TABLE signing_keys;
      DROP TABLE attempts;
      DROP TABLE sessions;
    `);
  }
}
