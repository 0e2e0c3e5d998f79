import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

/** Adds an index with which the sweep finds idle sessions without reading the others. */
export class IdleSessions20261126190000 implements MigrationInterface {
  name = 'IdleSessions20261126190000';
  // Indexes are built CONCURRENTLY, without blocking writes to sessions, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await buildIndex(db, 'sessions_seen_at_idx', 'sessions (seen_at)');
  }

  async down(db: QueryRunner) {
    await db.query('DROP INDEX sessions_seen_at_idx');
  }
}
