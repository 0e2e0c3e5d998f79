import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

const INDEXES = {
  users_username_key: { on: (lower: string) => `users (${lower}(username))`, unique: true },
  download_keys_address_idx: {
    on: (lower: string) =>
      `download_keys (${lower}(email), game_id, created_at, id) INCLUDE (email) WHERE email IS NOT NULL AND revoked_at IS NULL`,
    unique: false,
  },
  download_keys_unowned_address_idx: {
    on: (lower: string) =>
      `download_keys (${lower}(email), game_id, created_at, id) INCLUDE (email) WHERE email IS NOT NULL AND account_id IS NULL AND revoked_at IS NULL`,
    unique: false,
  },
};

/**
 * Compares email addresses and usernames ignoring the case of ASCII letters only. `lower` follows Unicode, in
 * which the Kelvin sign in "K@example.com" is the letter k, so it attributes one person's purchases to
 * another.
 */
export class LowerAscii20261125100300 implements MigrationInterface {
  name = 'LowerAscii20261125100300';
  // Indexes are built CONCURRENTLY, without blocking writes to download keys, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await db.query(`
      CREATE OR REPLACE FUNCTION lower_ascii(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
        RETURN lower($1 COLLATE "C")`);
    await useFunction(db, 'lower_ascii');
    for (const [name, { on, unique }] of Object.entries(INDEXES)) {
      await buildIndex(db, `${name}_new`, on('lower_ascii'), { unique });
      await dropIndex(db, name);
      await db.query(`ALTER INDEX ${name}_new RENAME TO ${name}`);
    }
    // Corrects the copies of the few email addresses with other letters.
    await db.query(`
      UPDATE purchase_games g SET email = lower_ascii(p.email) FROM purchases p
      WHERE p.id = g.purchase_id AND p.email ~ '[^\\x01-\\x7f]' AND g.email <> lower_ascii(p.email)`);
    await db.query(`
      UPDATE download_keys k SET purchase_email = lower_ascii(p.email) FROM purchases p
      WHERE p.id = k.purchase_id AND p.email ~ '[^\\x01-\\x7f]' AND k.purchase_email <> lower_ascii(p.email)`);
  }

  async down(db: QueryRunner) {
    await useFunction(db, 'lower');
    for (const [name, { on, unique }] of Object.entries(INDEXES)) {
      await db.query(`DROP INDEX ${name}`);
      await db.query(`CREATE ${unique ? 'UNIQUE' : ''} INDEX ${name} ON ${on('lower')}`);
    }
    await db.query(`DROP FUNCTION lower_ascii(text)`);
  }
}

async function useFunction(db: QueryRunner, lower: string) {
  await db.query(`
    CREATE OR REPLACE FUNCTION purchase_games_take_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      SELECT p.user_id, ${lower}(p.email) INTO NEW.user_id, NEW.email
      FROM purchases p WHERE p.id = NEW.purchase_id FOR SHARE;
      RETURN NEW;
    END $$`);
  await db.query(`
    CREATE OR REPLACE FUNCTION download_keys_take_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.account_id := NEW.user_id;
      NEW.purchase_email := NULL;
      IF NEW.purchase_id IS NOT NULL THEN
        SELECT coalesce(NEW.user_id, p.user_id), ${lower}(p.email) INTO NEW.account_id, NEW.purchase_email
        FROM purchases p WHERE p.id = NEW.purchase_id FOR SHARE;
      END IF;
      RETURN NEW;
    END $$`);
  await db.query(`
    CREATE OR REPLACE FUNCTION purchases_carry_buyer() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE purchase_games SET user_id = NEW.user_id, email = ${lower}(NEW.email) WHERE purchase_id = NEW.id;
      UPDATE download_keys SET account_id = coalesce(user_id, NEW.user_id), purchase_email = ${lower}(NEW.email)
      WHERE purchase_id = NEW.id;
      RETURN NULL;
    END $$`);
  await db.query(`ALTER TABLE user_emails DROP CONSTRAINT IF EXISTS user_emails_email_check`);
  await db.query(`
    ALTER TABLE user_emails ADD CONSTRAINT user_emails_email_check CHECK (email <> '' AND email = ${lower}(email)) NOT VALID`);
  await db.query(`ALTER TABLE user_emails VALIDATE CONSTRAINT user_emails_email_check`);
}
