import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndex } from './steps/build-index';
import { dropIndex } from './steps/drop-index';

export class BuildsByChannel20261125100100 implements MigrationInterface {
  name = 'BuildsByChannel20261125100100';
  // Indexes are built CONCURRENTLY, without blocking writes to builds, which a transaction can't do.
  transaction = false;

  async up(db: QueryRunner) {
    for (const constraint of ['builds_file_check', 'builds_size_check'])
      await db.query(`ALTER TABLE builds VALIDATE CONSTRAINT ${constraint}`);
    await buildIndex(db, 'builds_channel_idx', 'builds (game_id, channel_name, id)');
    await buildIndex(
      db,
      'builds_newest_file_idx',
      `builds (game_id, channel_name, id DESC) WHERE state = 'completed' AND size IS NOT NULL`,
    );
    // builds_channel_idx begins with the same column.
    await dropIndex(db, 'builds_game_id_idx');
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX builds_game_id_idx ON builds (game_id)`);
    await db.query(`DROP INDEX builds_newest_file_idx`);
    await db.query(`DROP INDEX builds_channel_idx`);
  }
}
