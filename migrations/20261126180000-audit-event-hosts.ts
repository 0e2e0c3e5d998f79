import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lets an erasure also remove the host of a webhook from its events. */
export class AuditEventHosts20261126180000 implements MigrationInterface {
  name = 'AuditEventHosts20261126180000';

  async up(db: QueryRunner) {
    await db.query(keepFactsExcept(`'{address,host}'::text[]`));
  }

  async down(db: QueryRunner) {
    await db.query(keepFactsExcept(`'address'`));
  }
}

const keepFactsExcept = (removed: string) => `
  CREATE OR REPLACE FUNCTION audit_events_keep_their_facts() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (NEW.id, NEW.at, NEW.event, NEW.user_id, NEW.request_id, NEW.details)
      IS DISTINCT FROM (OLD.id, OLD.at, OLD.event, OLD.user_id, OLD.request_id, OLD.details - ${removed})
    THEN RAISE EXCEPTION 'audit events are not changed';
    END IF;
    RETURN NEW;
  END $$;`;
