import type { MigrationInterface, QueryRunner } from 'typeorm';

const NAME = 'games_hidden_hash_idx';
const HIDDEN = `visibility <> 'public' OR published_at IS NULL`;

export class HiddenGamesByHash20260107000100 implements MigrationInterface {
  name = 'HiddenGamesByHash20260107000100';
  // CONCURRENTLY: games are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // One page for each question however many games there are, where a tree has one for each of its levels.
    await build(db);
    await db.query(`DROP INDEX CONCURRENTLY IF EXISTS games_hidden_idx`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX games_hidden_idx ON games (id) WHERE ${HIDDEN}`);
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
  await db.query(`CREATE INDEX CONCURRENTLY ${NAME} ON games USING hash (id) WHERE ${HIDDEN}`);
  await db.query(`SET lock_timeout = '${lock_timeout}'`);
}
