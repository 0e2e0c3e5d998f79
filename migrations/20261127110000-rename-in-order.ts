import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Makes a rename lock the games of the user in the order of their IDs, like sales and imports. */
export class RenameInOrder20261127110000 implements MigrationInterface {
  name = 'RenameInOrder20261127110000';

  async up(db: QueryRunner) {
    await db.query(
      carryUsername('PERFORM id FROM games WHERE user_id = NEW.id ORDER BY id FOR NO KEY UPDATE;'),
    );
  }

  async down(db: QueryRunner) {
    await db.query(carryUsername(''));
  }
}

const carryUsername = (lock: string) => `
  CREATE OR REPLACE FUNCTION users_carry_username() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    ${lock}
    UPDATE games SET owner_name = NEW.username WHERE user_id = NEW.id;
    RETURN NULL;
  END $$`;
