import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const NAME = 'games_hidden_idx';
const BEFORE = 'games_hidden_hash_idx';
const INDEX = 'games USING hash (id)';
const HIDDEN = `visibility <> 'public' OR published_at IS NULL`;
// A hash index grows bucket by bucket: one that waits for its turn holds twice as many entries as are meant for it. These
// fit in its page as long as half of it is meant to be free, and a little more for those that are fuller than the average.
const ROOM = 'fillfactor = 40';

export class HiddenGamesWithRoom20260108000100 implements MigrationInterface {
  name = 'HiddenGamesWithRoom20260108000100';
  // CONCURRENTLY: games are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, NAME, `${INDEX} WITH (${ROOM}) WHERE ${HIDDEN}`);
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${BEFORE}`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX ${BEFORE} ON ${INDEX} WHERE ${HIDDEN}`);
    await db.query(`DROP INDEX ${NAME}`);
  }
}
