import type { MigrationInterface, QueryRunner } from 'typeorm';

export class EndOfRefreshTokens20260201000200 implements MigrationInterface {
  name = 'EndOfRefreshTokens20260201000200';

  async up(db: QueryRunner) {
    // The default is for families that are there, and for replicas of the release before.
    await db.query(`
      ALTER TABLE oauth_refresh_tokens
        ADD family_ends_at timestamptz NOT NULL DEFAULT now() + interval '180 days'`);
  }

  async down(db: QueryRunner) {
    await db.query(`ALTER TABLE oauth_refresh_tokens DROP family_ends_at`);
  }
}
