import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds a list of stored files to delete. A transaction that drops a reference to a file records its key here,
 * so that the file is deleted even if the process is killed right after the commit.
 */
export class UnusedFiles20261129170000 implements MigrationInterface {
  name = 'UnusedFiles20261129170000';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE TABLE unused_files (
        file_key text CONSTRAINT unused_files_pkey PRIMARY KEY,
        due_at timestamptz NOT NULL DEFAULT now()
      );

      -- Only keys that the service chose: files of imported records can be in use elsewhere.
      -- SET search_path, because restoring rows from a dump runs without one.
      CREATE FUNCTION record_unused_file() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        IF OLD.file_key ~ '^[0-9]{1,18}/([0-9a-f-]{36}|builds)/' THEN
          INSERT INTO unused_files (file_key) VALUES (OLD.file_key)
          ON CONFLICT (file_key) DO UPDATE SET due_at = least(unused_files.due_at, EXCLUDED.due_at);
        END IF;
        RETURN NULL;
      END $$;
    `);
    for (const table of ['uploads', 'builds', 'build_files'])
      await db.query(`
        CREATE TRIGGER ${table}_record_replaced_file AFTER UPDATE OF file_key ON ${table} FOR EACH ROW
          WHEN (OLD.file_key IS DISTINCT FROM NEW.file_key) EXECUTE FUNCTION record_unused_file();
        CREATE TRIGGER ${table}_record_deleted_file AFTER DELETE ON ${table} FOR EACH ROW
          WHEN (OLD.file_key IS NOT NULL) EXECUTE FUNCTION record_unused_file();
      `);
  }

  async down(db: QueryRunner) {
    for (const table of ['uploads', 'builds', 'build_files'])
      await db.query(`
        DROP TRIGGER ${table}_record_deleted_file ON ${table};
        DROP TRIGGER ${table}_record_replaced_file ON ${table};
      `);
    await db.query('DROP FUNCTION record_unused_file(); DROP TABLE unused_files');
  }
}
