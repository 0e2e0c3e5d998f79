import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const NAME = 'games_hash_idx';

/** A page of a collection asks for its games one by one: each is found in one page, however many games there are. */
export class GamesByHash20260111000100 implements MigrationInterface {
  name = 'GamesByHash20260111000100';
  // CONCURRENTLY: games are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // Of a sum: an index of the id itself would be taken for the question of what is hidden, in place of that of the hidden ones.
    await buildIndex(db, NAME, 'games USING hash ((id + 0)) WITH (fillfactor = 40)');
    // Nothing is known of a sum before, and a game would be expected to be found many times. To know of an empty table that it
    // is empty is worse: foreign keys are then checked by reading it whole, however fast it fills.
    const [any] = (await db.query(`SELECT FROM games LIMIT 1`)) as object[];
    if (any) await db.query(`ANALYZE games`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP INDEX ${NAME}`);
  }
}
