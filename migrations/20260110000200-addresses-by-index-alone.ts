import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const KEY = 'user_emails_pkey';
const BUILT = 'user_emails_user_id_email_verified_key';

/** Which addresses somebody has verified is asked wherever keys and purchases are looked up: the primary key tells it. */
export class AddressesByIndexAlone20260110000200 implements MigrationInterface {
  name = 'AddressesByIndexAlone20260110000200';
  // CONCURRENTLY: addresses are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, BUILT, 'user_emails (user_id, email) INCLUDE (verified)', { unique: true });
    await db.query(`
      ALTER TABLE user_emails DROP CONSTRAINT ${KEY}, ADD CONSTRAINT ${KEY} PRIMARY KEY USING INDEX ${BUILT}`);
  }

  async down(db: QueryRunner) {
    await db.query(`
      ALTER TABLE user_emails DROP CONSTRAINT ${KEY}, ADD CONSTRAINT ${KEY} PRIMARY KEY (user_id, email)`);
  }
}
