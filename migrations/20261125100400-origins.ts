import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const WITH_IDS = ['purchases', 'download_keys', 'collections'];

/**
 * Distinguishes imported IDs from those that the service assigned. The origin of older rows is unknown, so
 * imports may still change all of them. Also records who wrote the blurb of a collection entry, so that an
 * erasure can clear blurbs in other users' collections.
 */
export class Origins20261125100400 implements MigrationInterface {
  name = 'Origins20261125100400';
  // Indexes are built CONCURRENTLY, without blocking writes to collections, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    for (const table of WITH_IDS) {
      await db.query(
        `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS imported_id boolean NOT NULL DEFAULT true`,
      );
      await db.query(`ALTER TABLE ${table} ALTER COLUMN imported_id SET DEFAULT false`);
    }
    await db.query(
      `ALTER TABLE collection_games ADD COLUMN IF NOT EXISTS blurb_user_id bigint
       CONSTRAINT collection_games_blurb_user_id_fkey REFERENCES users ON DELETE SET NULL`,
    );
    await buildIndex(
      db,
      'collection_games_blurb_user_id_idx',
      'collection_games (blurb_user_id) WHERE blurb_user_id IS NOT NULL',
    );
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE collection_games DROP COLUMN blurb_user_id`);
    for (const table of WITH_IDS) await db.query(`ALTER TABLE ${table} DROP COLUMN imported_id`);
  }
}
