import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WhatConsentCovers20260201000100 implements MigrationInterface {
  name = 'WhatConsentCovers20260201000100';

  async up(db: QueryRunner) {
    // Nobody has read about either on a consent page before: consents that are there cover neither.
    await db.query(`
      ALTER TABLE oauth_applications
        ADD may_start_games boolean NOT NULL DEFAULT false,
        ALTER implicit_allowed SET DEFAULT false`);
    await db.query(`
      ALTER TABLE oauth_grants
        ADD may_start_games boolean NOT NULL DEFAULT false,
        ADD implicit_allowed boolean NOT NULL DEFAULT false`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE oauth_grants DROP implicit_allowed, DROP may_start_games`);
    await db.query(
      `ALTER TABLE oauth_applications DROP may_start_games, ALTER implicit_allowed SET DEFAULT true`,
    );
  }
}
