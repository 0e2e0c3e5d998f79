import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Drops the tables of changes, because caches have a time to live. Replicas of 0.1 that still run fail to
 * poll these tables. They then use cached values for at most 0.7 seconds, as while the database doesn't
 * respond to a poll.
 */
export class DropRecordedChanges20261128100000 implements MigrationInterface {
  name = 'DropRecordedChanges20261128100000';

  async up(db: QueryRunner) {
    await db.query(`
      DROP TRIGGER users_note_build_change ON users;
      DROP TRIGGER games_note_build_change ON games;
      DROP TRIGGER builds_note_build_change ON builds;
      DROP FUNCTION note_build_change();
      DROP TABLE build_changes;
      DROP TRIGGER api_keys_note_update ON api_keys;
      DROP TRIGGER api_keys_note_delete ON api_keys;
      DROP TRIGGER api_keys_note_truncate ON api_keys;
      DROP FUNCTION note_api_key_change();
      DROP TABLE api_key_changes;
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      CREATE TABLE build_changes (
        xid xid8 NOT NULL DEFAULT pg_current_xact_id() CONSTRAINT build_changes_pkey PRIMARY KEY
      );
      CREATE FUNCTION note_build_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        INSERT INTO build_changes DEFAULT VALUES ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$;
      CREATE TRIGGER users_note_build_change AFTER UPDATE OF username OR DELETE OR TRUNCATE ON users
        FOR EACH STATEMENT EXECUTE FUNCTION note_build_change();
      CREATE TRIGGER games_note_build_change AFTER UPDATE OF visibility, slug, user_id OR DELETE OR TRUNCATE ON games
        FOR EACH STATEMENT EXECUTE FUNCTION note_build_change();
      CREATE TRIGGER builds_note_build_change AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON builds
        FOR EACH STATEMENT EXECUTE FUNCTION note_build_change();
      ALTER TABLE users ENABLE ALWAYS TRIGGER users_note_build_change;
      ALTER TABLE games ENABLE ALWAYS TRIGGER games_note_build_change;
      ALTER TABLE builds ENABLE ALWAYS TRIGGER builds_note_build_change;

      CREATE TABLE api_key_changes (
        xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        api_key_id bigint NOT NULL,
        CONSTRAINT api_key_changes_pkey PRIMARY KEY (xid, api_key_id)
      );
      CREATE FUNCTION note_api_key_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        INSERT INTO api_key_changes (api_key_id) VALUES (CASE TG_OP WHEN 'TRUNCATE' THEN 0 ELSE OLD.id END)
        ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$;
      CREATE TRIGGER api_keys_note_update AFTER UPDATE ON api_keys
        FOR EACH ROW WHEN (
          (OLD.key_hash, OLD.user_id, OLD.scopes, OLD.revoked_at, OLD.expires_at)
            IS DISTINCT FROM (NEW.key_hash, NEW.user_id, NEW.scopes, NEW.revoked_at, NEW.expires_at)
          OR OLD.id <> NEW.id)
        EXECUTE FUNCTION note_api_key_change();
      CREATE TRIGGER api_keys_note_delete AFTER DELETE ON api_keys
        FOR EACH ROW EXECUTE FUNCTION note_api_key_change();
      CREATE TRIGGER api_keys_note_truncate AFTER TRUNCATE ON api_keys
        FOR EACH STATEMENT EXECUTE FUNCTION note_api_key_change();
      ALTER TABLE api_keys
        ENABLE ALWAYS TRIGGER api_keys_note_update,
        ENABLE ALWAYS TRIGGER api_keys_note_delete,
        ENABLE ALWAYS TRIGGER api_keys_note_truncate;
    `);
  }
}
