import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/** Records who wrote the blurb of a collection entry, so that an erasure also clears blurbs in other people's collections. */
export class BlurbAuthors20261125100400 implements MigrationInterface {
  name = 'BlurbAuthors20261125100400';
  // CONCURRENTLY, because collections are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
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
  }
}
