import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const NAME = 'games_hidden_hash_idx';
const HIDDEN = `visibility <> 'public' OR published_at IS NULL`;

export class HiddenGamesByHash20260107000100 implements MigrationInterface {
  name = 'HiddenGamesByHash20260107000100';
  // CONCURRENTLY: games are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // One page for each question however many games there are, where a tree has one for each of its levels.
    await buildIndex(db, NAME, `games USING hash (id) WHERE ${HIDDEN}`);
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS games_hidden_idx`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX games_hidden_idx ON games (id) WHERE ${HIDDEN}`);
    await db.query(`DROP INDEX ${NAME}`);
  }
}
