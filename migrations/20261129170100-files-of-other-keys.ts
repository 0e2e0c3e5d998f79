import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';

const TABLES = ['uploads', 'builds'];

/** Finds the records that use a file whose key doesn't begin with the ID of their game. Most keys do. */
export class FilesOfOtherKeys20261129170100 implements MigrationInterface {
  name = 'FilesOfOtherKeys20261129170100';
  // CONCURRENTLY, because both tables are read and written at the same time.
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
