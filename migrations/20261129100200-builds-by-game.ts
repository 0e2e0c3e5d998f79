import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/** Adds an index that finds the newest builds of a game in all channels. */
export class BuildsByGame20261129100200 implements MigrationInterface {
  name = 'BuildsByGame20261129100200';
  // Indexes are built CONCURRENTLY, without blocking writes to builds, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, 'builds_game_id_idx', 'builds (game_id, id)');
  }

  async down(db: QueryRunner) {
    await db.query('DROP INDEX builds_game_id_idx');
  }
}
