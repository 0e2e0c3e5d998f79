import type { MigrationInterface, QueryRunner } from 'typeorm';

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
    await build(db);
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${BEFORE}`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX ${BEFORE} ON ${INDEX} WHERE ${HIDDEN}`);
    await db.query(`DROP INDEX ${NAME}`);
  }
}

/** Waits for other transactions as long as it takes, since nobody waits for it; what an interrupted try left is replaced. */
async function build(db: QueryRunner) {
  const [found] = (await db.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, [
    NAME,
  ])) as [{ indisvalid: boolean } | undefined];
  if (found?.indisvalid) return;
  const [{ lock_timeout }] = (await db.query(`SHOW lock_timeout`)) as [{ lock_timeout: string }];
  await db.query(`SET lock_timeout = 0`);
  await db.query(`DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`);
  await db.query(`CREATE INDEX CONCURRENTLY ${NAME} ON ${INDEX} WITH (${ROOM}) WHERE ${HIDDEN}`);
  await db.query(`SET lock_timeout = '${lock_timeout}'`);
}
