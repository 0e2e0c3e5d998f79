import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

const CHANNEL = 'builds (game_id, channel_name, id DESC)';
const PUBLISHED = `state = 'completed' AND NOT hidden`;

/**
 * Numbers the existing builds of each channel, and replaces the indexes of newest builds by ones without
 * hidden builds.
 */
export class BuildVersions20261129100100 implements MigrationInterface {
  name = 'BuildVersions20261129100100';
  // Indexes are built CONCURRENTLY, without blocking writes to builds, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    await db.query(`
      UPDATE builds b SET version = numbered.version
      FROM (SELECT id, row_number() OVER (PARTITION BY game_id, channel_name ORDER BY id) AS version FROM builds) numbered
      WHERE b.id = numbered.id AND b.version <> numbered.version`);
    await buildIndex(
      db,
      'builds_parent_build_id_idx',
      'builds (parent_build_id) WHERE parent_build_id IS NOT NULL',
    );
    await buildIndex(db, 'builds_expires_at_idx', 'builds (expires_at) WHERE expires_at IS NOT NULL');
    await db.query(`
      ALTER TABLE builds DROP CONSTRAINT IF EXISTS builds_parent_build_id_fkey,
        ADD CONSTRAINT builds_parent_build_id_fkey FOREIGN KEY (parent_build_id) REFERENCES builds NOT VALID`);
    await db.query(`ALTER TABLE builds VALIDATE CONSTRAINT builds_parent_build_id_fkey`);
    await buildIndex(db, 'builds_head_idx', `${CHANNEL} INCLUDE (user_version) WHERE ${PUBLISHED}`);
    await buildIndex(db, 'builds_head_file_idx', `${CHANNEL} WHERE ${PUBLISHED} AND size IS NOT NULL`);
    await dropIndex(db, 'builds_newest_idx');
    await dropIndex(db, 'builds_newest_file_idx');
  }

  async down(db: QueryRunner) {
    await db.query(`
      CREATE INDEX builds_newest_idx ON ${CHANNEL} INCLUDE (user_version) WHERE state = 'completed';
      CREATE INDEX builds_newest_file_idx ON ${CHANNEL} WHERE state = 'completed' AND size IS NOT NULL;
      DROP INDEX builds_head_file_idx, builds_head_idx;
      ALTER TABLE builds DROP CONSTRAINT builds_parent_build_id_fkey;
      DROP INDEX builds_expires_at_idx, builds_parent_build_id_idx`);
  }
}
