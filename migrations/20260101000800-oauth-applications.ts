import type { MigrationInterface, QueryRunner } from 'typeorm';

export class OauthApplications20260101000800 implements MigrationInterface {
  name = 'OauthApplications20260101000800';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE TABLE oauth_applications (
        client_id text CONSTRAINT oauth_applications_pkey PRIMARY KEY,
        user_id bigint NOT NULL CONSTRAINT oauth_applications_user_id_fkey REFERENCES users ON DELETE CASCADE,
        name text NOT NULL,
        redirect_uris text[] NOT NULL,
        scopes text[] NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT oauth_applications_client_id_check CHECK (length(client_id) BETWEEN 1 AND 200),
        CONSTRAINT oauth_applications_name_check CHECK (length(name) BETWEEN 1 AND 100)
      )`);
    await db.query(`CREATE INDEX oauth_applications_user_id_idx ON oauth_applications (user_id)`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE oauth_applications`);
  }
}
