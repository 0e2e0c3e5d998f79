import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AuditWithoutNetworks20260304000100 implements MigrationInterface {
  name = 'AuditWithoutNetworks20260304000100';

  async up(db: QueryRunner) {
    // Whose network it was is forgotten with the person; nothing else of an event changes. By row, to see what changes.
    await db.query(`
      CREATE FUNCTION audit_events_keep_their_facts() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF (NEW.id, NEW.at, NEW.event, NEW.user_id, NEW.request_id, NEW.details)
          IS DISTINCT FROM (OLD.id, OLD.at, OLD.event, OLD.user_id, OLD.request_id, OLD.details - 'address')
        THEN RAISE EXCEPTION 'audit events are not changed';
        END IF;
        RETURN NEW;
      END $$`);
    await db.query(`
      CREATE TRIGGER audit_events_keep_their_facts BEFORE UPDATE ON audit_events
      FOR EACH ROW EXECUTE FUNCTION audit_events_keep_their_facts()`);
    await db.query(`DROP TRIGGER audit_events_are_final ON audit_events`);
    await db.query(finalOn('DELETE'));
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TRIGGER audit_events_are_final ON audit_events`);
    await db.query(finalOn('UPDATE OR DELETE'));
    await db.query(`DROP TRIGGER audit_events_keep_their_facts ON audit_events`);
    await db.query(`DROP FUNCTION audit_events_keep_their_facts()`);
  }
}

const finalOn = (changes: string) => `
  CREATE TRIGGER audit_events_are_final BEFORE ${changes} ON audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION audit_events_are_final()`;
