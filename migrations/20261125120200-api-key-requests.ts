import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Counts the daily requests of each API key for its user. Only databases of 0.1 have the table user_writes.
 */
export class ApiKeyRequests20261125120200 implements MigrationInterface {
  name = 'ApiKeyRequests20261125120200';

  async up(db: QueryRunner) {
    // The fill factor leaves space for updates of the count, which then need no new index entries.
    await db.query(`
      CREATE TABLE api_key_requests (
        api_key_id bigint NOT NULL
          CONSTRAINT api_key_requests_api_key_id_fkey REFERENCES api_keys ON DELETE CASCADE,
        day date NOT NULL,
        requests bigint NOT NULL,
        CONSTRAINT api_key_requests_pkey PRIMARY KEY (api_key_id, day)
      ) WITH (fillfactor = 85);
      CREATE INDEX api_key_requests_day_idx ON api_key_requests (day);
      DROP TABLE IF EXISTS user_writes;
    `);
  }

  async down(db: QueryRunner) {
    await db.query('DROP TABLE api_key_requests');
  }
}
