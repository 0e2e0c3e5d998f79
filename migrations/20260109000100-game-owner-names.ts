import type { MigrationInterface, QueryRunner } from 'typeorm';

export class GameOwnerNames20260109000100 implements MigrationInterface {
  name = 'GameOwnerNames20260109000100';

  async up(db: QueryRunner) {
    // A copy of the owner's username, for lists of games: docs/explanation/decisions/owner-names.md.
    await db.query(`ALTER TABLE games ADD owner_name text`);
    await db.query(`
      CREATE FUNCTION users_carry_username() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE games SET owner_name = NEW.username WHERE user_id = NEW.id;
        RETURN NULL;
      END $$`);
    await db.query(`
      CREATE TRIGGER users_carry_username AFTER UPDATE OF username ON users
      FOR EACH ROW WHEN (OLD.username IS DISTINCT FROM NEW.username)
      EXECUTE FUNCTION users_carry_username()`);
    // The lock makes a change of the username that is under way wait, or be waited for: it would not see this row.
    await db.query(`
      CREATE FUNCTION games_take_owner_name() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        SELECT u.username INTO NEW.owner_name FROM users u WHERE u.id = NEW.user_id FOR SHARE;
        RETURN NEW;
      END $$`);
    await db.query(`
      CREATE TRIGGER games_take_owner_name BEFORE INSERT ON games
      FOR EACH ROW WHEN (NEW.owner_name IS NULL) EXECUTE FUNCTION games_take_owner_name()`);
    await db.query(`
      CREATE TRIGGER games_change_owner_name BEFORE UPDATE OF user_id ON games
      FOR EACH ROW WHEN (OLD.user_id IS DISTINCT FROM NEW.user_id) EXECUTE FUNCTION games_take_owner_name()`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TRIGGER games_change_owner_name ON games`);
    await db.query(`DROP TRIGGER games_take_owner_name ON games`);
    await db.query(`DROP FUNCTION games_take_owner_name()`);
    await db.query(`DROP TRIGGER users_carry_username ON users`);
    await db.query(`DROP FUNCTION users_carry_username()`);
    await db.query(`ALTER TABLE games DROP owner_name`);
  }
}
