import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Rejects a TRUNCATE of the audit events, and lets an erasure remove the network of a failed sign-in. */
export class AuditEventNetworks20261127120000 implements MigrationInterface {
  name = 'AuditEventNetworks20261127120000';

  async up(db: QueryRunner) {
    await db.query(keepFactsExcept('{address,host,network}'));
    await db.query(
      `CREATE TRIGGER audit_events_are_not_truncated BEFORE TRUNCATE ON audit_events
         FOR EACH STATEMENT EXECUTE FUNCTION audit_events_are_final()`,
    );
  }

  async down(db: QueryRunner) {
    await db.query('DROP TRIGGER audit_events_are_not_truncated ON audit_events');
    await db.query(keepFactsExcept('{address,host}'));
  }
}

const keepFactsExcept = (removed: string) => `
  CREATE OR REPLACE FUNCTION audit_events_keep_their_facts() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (NEW.id, NEW.at, NEW.event, NEW.user_id, NEW.request_id, NEW.details)
      IS DISTINCT FROM (OLD.id, OLD.at, OLD.event, OLD.user_id, OLD.request_id, OLD.details - '${removed}'::text[])
    THEN RAISE EXCEPTION 'audit events are not changed';
    END IF;
    RETURN NEW;
  END $$`;
