import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const OLD = 'download_keys_email_idx';
const NEWEST = 'game_id, created_at, id';
const UNOWNED = 'account_id IS NULL AND revoked_at IS NULL';

/** The newest key of an account or an address is the last of its entries in an index, which tells all that the search needs. */
const INDEXES = {
  download_keys_account_id_idx: `(account_id, ${NEWEST}) WHERE account_id IS NOT NULL AND revoked_at IS NULL`,
  download_keys_address_idx: `(lower(email), ${NEWEST}) INCLUDE (email) WHERE email IS NOT NULL AND revoked_at IS NULL`,
  download_keys_purchase_email_idx: `(purchase_email, ${NEWEST}) WHERE purchase_email IS NOT NULL AND revoked_at IS NULL`,
  download_keys_unowned_address_idx: `(lower(email), ${NEWEST}) INCLUDE (email) WHERE email IS NOT NULL AND ${UNOWNED}`,
  download_keys_unowned_purchase_email_idx: `(purchase_email, ${NEWEST}) INCLUDE (email) WHERE purchase_email IS NOT NULL AND ${UNOWNED}`,
};

export class DownloadKeyOwnerIndexes20260203000400 implements MigrationInterface {
  name = 'DownloadKeyOwnerIndexes20260203000400';
  // CONCURRENTLY: keys are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    for (const [name, on] of Object.entries(INDEXES)) await buildIndex(db, name, `download_keys ${on}`);
    // Replicas of the version before use the new index of addresses in its place. download_keys_user_id_idx is theirs alone.
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${OLD}`);
  }

  async down(db: QueryRunner) {
    await db.query(
      `CREATE INDEX ${OLD} ON download_keys (lower(email), game_id) WHERE email IS NOT NULL AND revoked_at IS NULL`,
    );
    for (const name of Object.keys(INDEXES)) await db.query(`DROP INDEX ${name}`);
  }
}
