import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Replaces a BEFORE trigger, which makes every update that mentions a key column, even with the same value,
 * lock the game against new purchases of it, so that an import and a sale could deadlock.
 */
export class OwnerNameAfterUpdate20261127100000 implements MigrationInterface {
  name = 'OwnerNameAfterUpdate20261127100000';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE FUNCTION games_change_owner_name() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE games SET owner_name = (SELECT u.username FROM users u WHERE u.id = NEW.user_id FOR SHARE)
        WHERE id = NEW.id;
        RETURN NULL;
      END $$;
      DROP TRIGGER games_change_owner_name ON games;
      CREATE TRIGGER games_change_owner_name AFTER UPDATE OF user_id ON games
        FOR EACH ROW WHEN (OLD.user_id IS DISTINCT FROM NEW.user_id) EXECUTE FUNCTION games_change_owner_name();
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TRIGGER games_change_owner_name ON games;
      CREATE TRIGGER games_change_owner_name BEFORE UPDATE OF user_id ON games
        FOR EACH ROW WHEN (OLD.user_id IS DISTINCT FROM NEW.user_id) EXECUTE FUNCTION games_take_owner_name();
      DROP FUNCTION games_change_owner_name();
    `);
  }
}
