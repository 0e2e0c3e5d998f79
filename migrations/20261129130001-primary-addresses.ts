import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/** Ensures that an account has at most one primary email address. */
export class PrimaryAddresses20261129130001 implements MigrationInterface {
  name = 'PrimaryAddresses20261129130001';
  // Indexes are built CONCURRENTLY, without blocking writes to email addresses, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, 'user_emails_primary_key', 'user_emails (user_id) WHERE is_primary', {
      unique: true,
    });
  }

  async down(db: QueryRunner) {
    await db.query('DROP INDEX user_emails_primary_key');
  }
}
