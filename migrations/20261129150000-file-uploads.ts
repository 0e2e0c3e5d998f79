import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds files that sellers upload on pages, and files that players don't see. */
export class FileUploads20261129150000 implements MigrationInterface {
  name = 'FileUploads20261129150000';

  async up(db: QueryRunner) {
    await db.query(`
      ALTER TABLE uploads ADD hidden boolean NOT NULL DEFAULT false;

      -- The ID is that of an upload session, which is deleted once the file is stored.
      CREATE TABLE file_uploads (
        id uuid CONSTRAINT file_uploads_pkey PRIMARY KEY,
        game_id bigint NOT NULL CONSTRAINT file_uploads_game_id_fkey REFERENCES games ON DELETE CASCADE,
        filename text NOT NULL,
        size bigint NOT NULL,
        display_name text,
        traits text[] NOT NULL DEFAULT '{}',
        hidden boolean NOT NULL DEFAULT false,
        replaces bigint,
        channel_name text,
        user_version text,
        state text NOT NULL DEFAULT 'receiving',
        error text,
        upload_id bigint,
        leased_until timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT file_uploads_filename_check CHECK (length(filename) BETWEEN 1 AND 255),
        CONSTRAINT file_uploads_size_check CHECK (size >= 0),
        CONSTRAINT file_uploads_state_check CHECK (state IN ('receiving', 'storing', 'stored', 'failed'))
      );
      CREATE INDEX file_uploads_game_id_idx ON file_uploads (game_id);
      CREATE INDEX file_uploads_created_at_idx ON file_uploads (created_at);
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TABLE file_uploads;
      ALTER TABLE uploads DROP hidden;
    `);
  }
}
