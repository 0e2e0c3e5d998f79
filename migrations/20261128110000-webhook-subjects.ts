import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Allows messages about any subject, not only purchases, and event types that need no migration. The column
 * `purchase_id` of deliveries stays for replicas of 0.1.0: the trigger copies one form to the other.
 */
export class WebhookSubjects20261128110000 implements MigrationInterface {
  name = 'WebhookSubjects20261128110000';

  async up(db: QueryRunner) {
    await db.query(`
      ALTER TABLE webhooks DROP CONSTRAINT webhooks_events_check,
        ADD CONSTRAINT webhooks_events_check CHECK (cardinality(events) > 0) NOT VALID;
      ALTER TABLE webhooks VALIDATE CONSTRAINT webhooks_events_check;

      ALTER TABLE webhook_deliveries ALTER COLUMN purchase_id DROP NOT NULL,
        ADD COLUMN subject_type text, ADD COLUMN subject_id bigint;
      CREATE FUNCTION webhook_deliveries_take_subject() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF NEW.subject_type IS NULL THEN
          NEW.subject_type := 'purchase';
          NEW.subject_id := NEW.purchase_id;
        ELSIF NEW.subject_type = 'purchase' THEN
          NEW.purchase_id := NEW.subject_id;
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER webhook_deliveries_take_subject BEFORE INSERT ON webhook_deliveries
        FOR EACH ROW EXECUTE FUNCTION webhook_deliveries_take_subject();
      UPDATE webhook_deliveries SET subject_type = 'purchase', subject_id = purchase_id;
      DROP INDEX webhook_deliveries_purchase_id_idx;
      CREATE INDEX webhook_deliveries_subject_idx ON webhook_deliveries (subject_id, subject_type);

      -- 0.1.0 doesn't have this table.
      ALTER TABLE webhook_attempts ADD COLUMN subject_type text, ADD COLUMN subject_id bigint;
      UPDATE webhook_attempts SET subject_type = 'purchase', subject_id = purchase_id WHERE purchase_id IS NOT NULL;
      ALTER TABLE webhook_attempts DROP COLUMN purchase_id;
      CREATE INDEX webhook_attempts_subject_idx ON webhook_attempts (subject_id, subject_type);
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      ALTER TABLE webhook_attempts ADD COLUMN purchase_id bigint;
      UPDATE webhook_attempts SET purchase_id = subject_id WHERE subject_type = 'purchase';
      DELETE FROM webhook_attempts WHERE subject_type <> 'purchase';
      ALTER TABLE webhook_attempts DROP COLUMN subject_type, DROP COLUMN subject_id;
      CREATE INDEX webhook_attempts_purchase_id_idx ON webhook_attempts (purchase_id);

      DROP TRIGGER webhook_deliveries_take_subject ON webhook_deliveries;
      DROP FUNCTION webhook_deliveries_take_subject();
      DELETE FROM webhook_deliveries WHERE purchase_id IS NULL;
      ALTER TABLE webhook_deliveries ALTER COLUMN purchase_id SET NOT NULL,
        DROP COLUMN subject_type, DROP COLUMN subject_id;
      CREATE INDEX webhook_deliveries_purchase_id_idx ON webhook_deliveries (purchase_id);

      UPDATE webhooks SET events = ARRAY(
        SELECT event FROM unnest(events) AS event WHERE event IN ('purchase.completed', 'purchase.refunded'))
      WHERE NOT events <@ '{purchase.completed,purchase.refunded}'
        AND events && '{purchase.completed,purchase.refunded}';
      DELETE FROM webhooks WHERE NOT events <@ '{purchase.completed,purchase.refunded}';
      ALTER TABLE webhooks DROP CONSTRAINT webhooks_events_check, ADD CONSTRAINT webhooks_events_check
        CHECK (cardinality(events) > 0 AND events <@ '{purchase.completed,purchase.refunded}');
    `);
  }
}
