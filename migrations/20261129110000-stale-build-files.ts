import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deletes the patch and the signature of a build when an import or a command changes its archive. */
export class StaleBuildFiles20261129110000 implements MigrationInterface {
  name = 'StaleBuildFiles20261129110000';

  async up(db: QueryRunner) {
    await db.query(`
      -- SET search_path, because restoring rows from a dump runs without one.
      CREATE FUNCTION builds_delete_stale_files() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        DELETE FROM build_files WHERE build_id = NEW.id;
        RETURN NULL;
      END $$;
      CREATE TRIGGER builds_delete_stale_files AFTER UPDATE OF file_key, file_url ON builds FOR EACH ROW
        WHEN (coalesce(OLD.file_key, OLD.file_url) IS NOT NULL
              AND (OLD.file_key, OLD.file_url) IS DISTINCT FROM (NEW.file_key, NEW.file_url))
        EXECUTE FUNCTION builds_delete_stale_files();
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TRIGGER builds_delete_stale_files ON builds;
      DROP FUNCTION builds_delete_stale_files();
    `);
  }
}
