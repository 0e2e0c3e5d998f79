import type { MigrationInterface, QueryRunner } from 'typeorm';

export class SigningKeys20260102000300 implements MigrationInterface {
  name = 'SigningKeys20260102000300';

  async up(db: QueryRunner) {
    // private_key is sealed under the API key pepper, which the database never holds.
    await db.query(`
      CREATE TABLE signing_keys (
        kid text CONSTRAINT signing_keys_pkey PRIMARY KEY,
        public_key bytea NOT NULL,
        private_key bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        signs_from timestamptz NOT NULL,
        token_lifetime integer NOT NULL,
        CONSTRAINT signing_keys_public_key_check CHECK (octet_length(public_key) = 32),
        CONSTRAINT signing_keys_token_lifetime_check CHECK (token_lifetime > 0)
      )`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE signing_keys`);
  }
}
