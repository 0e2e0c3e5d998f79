import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PurchaseGameBuyers20260104000100 implements MigrationInterface {
  name = 'PurchaseGameBuyers20260104000100';

  async up(db: QueryRunner) {
    // First purchases and then their games, as whoever writes both locks them.
    await db.query(`
      CREATE FUNCTION purchases_carry_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE purchase_games SET user_id = NEW.user_id, email = lower(NEW.email) WHERE purchase_id = NEW.id;
        RETURN NULL;
      END $$`);
    await db.query(`
      CREATE TRIGGER purchases_carry_buyer AFTER UPDATE OF user_id, email ON purchases
      FOR EACH ROW WHEN ((OLD.user_id, OLD.email) IS DISTINCT FROM (NEW.user_id, NEW.email))
      EXECUTE FUNCTION purchases_carry_buyer()`);
    // Copies from the purchase, so that one index finds what somebody bought of a game: docs/explanation/decisions/one-probe.md.
    // No foreign key of user_id: the purchase has it.
    await db.query(`ALTER TABLE purchase_games ADD user_id bigint, ADD email text`);
    // The lock makes a change of the purchase that is under way wait, or be waited for: it would not see this row.
    await db.query(`
      CREATE FUNCTION purchase_games_take_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        SELECT p.user_id, lower(p.email) INTO NEW.user_id, NEW.email
        FROM purchases p WHERE p.id = NEW.purchase_id FOR SHARE;
        RETURN NEW;
      END $$`);
    await db.query(`
      CREATE TRIGGER purchase_games_take_buyer BEFORE INSERT ON purchase_games
      FOR EACH ROW WHEN (NEW.email IS NULL) EXECUTE FUNCTION purchase_games_take_buyer()`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TRIGGER purchases_carry_buyer ON purchases`);
    await db.query(`DROP FUNCTION purchases_carry_buyer()`);
    await db.query(`DROP TRIGGER purchase_games_take_buyer ON purchase_games`);
    await db.query(`DROP FUNCTION purchase_games_take_buyer()`);
    await db.query(`ALTER TABLE purchase_games DROP user_id, DROP email`);
  }
}
