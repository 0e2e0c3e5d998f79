import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const TABLES = ['uploads', 'builds'];

/** Adds indexes of the few records that use a file whose key doesn't begin with the ID of their game. */
export class FilesOfOtherKeys20261129170100 implements MigrationInterface {
  name = 'FilesOfOtherKeys20261129170100';
  // Indexes are built CONCURRENTLY, without blocking writes to either table, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    for (const table of TABLES)
      await buildIndex(
        db,
        `${table}_other_key_idx`,
        `${table} (file_key) WHERE split_part(file_key, '/', 1) <> game_id::text`,
      );
  }

  async down(db: QueryRunner) {
    await db.query('DROP INDEX builds_other_key_idx, uploads_other_key_idx');
  }
}
