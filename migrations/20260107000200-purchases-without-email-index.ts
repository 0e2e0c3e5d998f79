import type { MigrationInterface, QueryRunner } from 'typeorm';
import { dropIndex } from './steps/drop-index';

export class PurchasesWithoutEmailIndex20260107000200 implements MigrationInterface {
  name = 'PurchasesWithoutEmailIndex20260107000200';
  // CONCURRENTLY: purchases are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // Who bought a game is looked up in purchase_games since its copies of the address are complete.
    await dropIndex(db, 'purchases_email_idx');
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX purchases_email_idx ON purchases (lower(email))`);
  }
}
