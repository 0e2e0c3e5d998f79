import type { MigrationInterface, QueryRunner } from 'typeorm';

const SOLD_AT = (purchase: string) =>
  `CASE WHEN ${purchase}.status IN ('complete', 'refunded') THEN ${purchase}.created_at END`;

export class SoldAt20260305000100 implements MigrationInterface {
  name = 'SoldAt20260305000100';

  async up(db: QueryRunner) {
    // Copies from the purchase, so that one index finds the newest sales of a game: docs/explanation/decisions/one-probe.md.
    await db.query(`ALTER TABLE purchase_games ADD sold_at timestamptz`);
    await db.query(`
      CREATE FUNCTION purchases_carry_sold_at() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE purchase_games SET sold_at = ${SOLD_AT('NEW')} WHERE purchase_id = NEW.id;
        RETURN NULL;
      END $$`);
    await db.query(`
      CREATE TRIGGER purchases_carry_sold_at AFTER UPDATE OF created_at, status ON purchases
      FOR EACH ROW WHEN ((${SOLD_AT('OLD')}) IS DISTINCT FROM (${SOLD_AT('NEW')}))
      EXECUTE FUNCTION purchases_carry_sold_at()`);
    // The lock makes a concurrent change of the purchase wait, or be waited for: its trigger would not see this row.
    await db.query(`
      CREATE FUNCTION purchase_games_take_sold_at() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        SELECT ${SOLD_AT('p')} INTO NEW.sold_at FROM purchases p WHERE p.id = NEW.purchase_id FOR SHARE;
        RETURN NEW;
      END $$`);
    await db.query(`
      CREATE TRIGGER purchase_games_take_sold_at BEFORE INSERT ON purchase_games
      FOR EACH ROW WHEN (NEW.sold_at IS NULL) EXECUTE FUNCTION purchase_games_take_sold_at()`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TRIGGER purchases_carry_sold_at ON purchases`);
    await db.query(`DROP FUNCTION purchases_carry_sold_at()`);
    await db.query(`DROP TRIGGER purchase_games_take_sold_at ON purchase_games`);
    await db.query(`DROP FUNCTION purchase_games_take_sold_at()`);
    await db.query(`ALTER TABLE purchase_games DROP sold_at`);
  }
}
