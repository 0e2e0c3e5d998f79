import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

const OLD = 'download_keys_user_id_idx';

/** What a deletion looks for by a foreign key is found without reading a whole table. */
const INDEXES = {
  builds_game_id_idx: 'builds (game_id)',
  collection_games_game_id_idx: 'collection_games (game_id)',
  collection_games_user_id_idx: 'collection_games (user_id)',
  download_keys_claimed_idx: 'download_keys (user_id) WHERE user_id IS NOT NULL',
  download_keys_game_id_idx: 'download_keys (game_id)',
  oauth_grants_user_id_idx: 'oauth_grants (user_id)',
  profile_collections_user_id_idx: 'profile_collections (user_id)',
};

export class ForeignKeysByIndex20261124700000 implements MigrationInterface {
  name = 'ForeignKeysByIndex20261124700000';
  // CONCURRENTLY: all of these tables are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    for (const [name, on] of Object.entries(INDEXES)) await buildIndex(db, name, on);
    // It left out revoked keys. Lookups by account have been using download_keys_account_id_idx.
    await dropIndex(db, OLD);
  }

  async down(db: QueryRunner) {
    await db.query(
      `CREATE INDEX ${OLD} ON download_keys (user_id, game_id) WHERE user_id IS NOT NULL AND revoked_at IS NULL`,
    );
    for (const name of Object.keys(INDEXES)) await db.query(`DROP INDEX ${name}`);
  }
}
