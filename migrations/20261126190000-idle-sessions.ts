import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/** The sweep that deletes idle sessions reads only these. */
export class IdleSessions20261126190000 implements MigrationInterface {
  name = 'IdleSessions20261126190000';
  // CONCURRENTLY, because sessions are read and written at the same time.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, 'sessions_seen_at_idx', 'sessions (seen_at)');
  }

  async down(db: QueryRunner) {
    await db.query('DROP INDEX sessions_seen_at_idx');
  }
}
