import type { MigrationInterface, QueryRunner } from 'typeorm';

// What opens doors; when a key was last used does not.
const DECIDES = ['key_hash', 'user_id', 'scopes', 'revoked_at', 'expires_at'];

export class ApiKeyChanges20260106000100 implements MigrationInterface {
  name = 'ApiKeyChanges20260106000100';

  async up(db: QueryRunner) {
    // Which keys each transaction changed: docs/explanation/decisions/remembered-credentials.md. 0: all of them.
    await db.query(`
      CREATE TABLE api_key_changes (
        xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        api_key_id bigint NOT NULL,
        CONSTRAINT api_key_changes_pkey PRIMARY KEY (xid, api_key_id)
      )`);
    // Whoever restores rows alone from a dump has no search_path.
    await db.query(`
      CREATE FUNCTION note_api_key_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        INSERT INTO api_key_changes (api_key_id) VALUES (CASE TG_OP WHEN 'TRUNCATE' THEN 0 ELSE OLD.id END)
        ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$`);
    const rowOf = (row: string) => `(${DECIDES.map((column) => `${row}.${column}`).join(', ')})`;
    for (const [name, change, rows] of [
      ['update', 'UPDATE', `ROW WHEN (${rowOf('OLD')} IS DISTINCT FROM ${rowOf('NEW')} OR OLD.id <> NEW.id)`],
      ['delete', 'DELETE', 'ROW'],
      ['truncate', 'TRUNCATE', 'STATEMENT'],
    ]) {
      await db.query(`
        CREATE TRIGGER api_keys_note_${name} AFTER ${change} ON api_keys
        FOR EACH ${rows} EXECUTE FUNCTION note_api_key_change()`);
      // A large import turns other triggers off.
      await db.query(`ALTER TABLE api_keys ENABLE ALWAYS TRIGGER api_keys_note_${name}`);
    }
  }

  async down(db: QueryRunner) {
    for (const name of ['update', 'delete', 'truncate'])
      await db.query(`DROP TRIGGER api_keys_note_${name} ON api_keys`);
    await db.query(`DROP FUNCTION note_api_key_change()`);
    await db.query(`DROP TABLE api_key_changes`);
  }
}
