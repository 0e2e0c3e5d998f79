import type { MigrationInterface, QueryRunner } from 'typeorm';

// In the order in which the import writes them.
const WATCHED = [
  ['users', 'UPDATE OF username'],
  ['games', 'UPDATE OF visibility, slug, user_id'],
  ['builds', 'INSERT OR UPDATE'],
];

export class BuildChanges20260105000100 implements MigrationInterface {
  name = 'BuildChanges20260105000100';

  async up(db: QueryRunner) {
    // A row for each transaction that may change which build is the newest: docs/explanation/decisions/remembered-builds.md.
    await db.query(`
      CREATE TABLE build_changes (
        xid xid8 NOT NULL DEFAULT pg_current_xact_id() CONSTRAINT build_changes_pkey PRIMARY KEY
      )`);
    // Whoever restores rows alone from a dump has no search_path.
    await db.query(`
      CREATE FUNCTION note_build_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        INSERT INTO build_changes DEFAULT VALUES ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$`);
    for (const [table, changes] of WATCHED) {
      await db.query(`
        CREATE TRIGGER ${table}_note_build_change AFTER ${changes} OR DELETE OR TRUNCATE ON ${table}
        FOR EACH STATEMENT EXECUTE FUNCTION note_build_change()`);
      // A large import turns other triggers off.
      await db.query(`ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_note_build_change`);
    }
  }

  async down(db: QueryRunner) {
    for (const [table] of WATCHED) await db.query(`DROP TRIGGER ${table}_note_build_change ON ${table}`);
    await db.query(`DROP FUNCTION note_build_change()`);
    await db.query(`DROP TABLE build_changes`);
  }
}
