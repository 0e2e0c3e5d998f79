import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Rows that are changed often and in no indexed column: a new version that finds room on its own page needs no new entry in
 * any index. Pages that are full already stay so until they are written anew.
 */
export class RoomForUpdates20260104001000 implements MigrationInterface {
  name = 'RoomForUpdates20260104001000';

  async up(db: QueryRunner) {
    await db.query(`ALTER TABLE api_keys SET (fillfactor = 85)`);
    await db.query(`ALTER TABLE collections SET (fillfactor = 85)`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE collections RESET (fillfactor)`);
    await db.query(`ALTER TABLE api_keys RESET (fillfactor)`);
  }
}
