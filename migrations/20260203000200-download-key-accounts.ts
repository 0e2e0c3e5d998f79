import type { MigrationInterface, QueryRunner } from 'typeorm';

export class DownloadKeyAccounts20260203000200 implements MigrationInterface {
  name = 'DownloadKeyAccounts20260203000200';

  async up(db: QueryRunner) {
    // Copies from the purchase, so that one index finds what somebody bought: docs/explanation/decisions/one-probe.md.
    // No foreign key of account_id: user_id and the purchase have it.
    await db.query(`ALTER TABLE download_keys ADD account_id bigint, ADD purchase_email text`);
    // The lock makes a concurrent change of the purchase wait, or be waited for: its trigger would not see this row.
    await db.query(`
      CREATE FUNCTION download_keys_take_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.account_id := NEW.user_id;
        NEW.purchase_email := NULL;
        IF NEW.purchase_id IS NOT NULL THEN
          SELECT coalesce(NEW.user_id, p.user_id), lower(p.email) INTO NEW.account_id, NEW.purchase_email
          FROM purchases p WHERE p.id = NEW.purchase_id FOR SHARE;
        END IF;
        RETURN NEW;
      END $$`);
    await db.query(`
      CREATE TRIGGER download_keys_take_buyer BEFORE INSERT ON download_keys
      FOR EACH ROW WHEN (NEW.account_id IS NULL AND NEW.purchase_email IS NULL)
      EXECUTE FUNCTION download_keys_take_buyer()`);
    await db.query(`
      CREATE TRIGGER download_keys_change_buyer BEFORE UPDATE OF user_id, purchase_id ON download_keys
      FOR EACH ROW WHEN ((OLD.user_id, OLD.purchase_id) IS DISTINCT FROM (NEW.user_id, NEW.purchase_id))
      EXECUTE FUNCTION download_keys_take_buyer()`);
    await db.query(carryBuyerTo(['purchase_games', 'download_keys']));
  }

  async down(db: QueryRunner) {
    await db.query(carryBuyerTo(['purchase_games']));
    await db.query(`DROP TRIGGER download_keys_change_buyer ON download_keys`);
    await db.query(`DROP TRIGGER download_keys_take_buyer ON download_keys`);
    await db.query(`DROP FUNCTION download_keys_take_buyer()`);
    await db.query(`ALTER TABLE download_keys DROP account_id, DROP purchase_email`);
  }
}

const UPDATES = {
  purchase_games: `
    UPDATE purchase_games SET user_id = NEW.user_id, email = lower(NEW.email) WHERE purchase_id = NEW.id;`,
  download_keys: `
    UPDATE download_keys SET account_id = coalesce(user_id, NEW.user_id), purchase_email = lower(NEW.email)
    WHERE purchase_id = NEW.id;`,
};

/** What the trigger of a purchase does after its account or its address changed. */
const carryBuyerTo = (tables: (keyof typeof UPDATES)[]) => `
  CREATE OR REPLACE FUNCTION purchases_carry_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN ${tables.map((table) => UPDATES[table]).join('')}
    RETURN NULL;
  END $$`;
