import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PurchasesWithoutEmailIndex20260107000200 implements MigrationInterface {
  name = 'PurchasesWithoutEmailIndex20260107000200';
  // CONCURRENTLY: purchases are read and written meanwhile.
  transaction = false;

  async up(db: QueryRunner) {
    // Who bought a game is looked up in purchase_games since its copies of the address are complete. The index of a table
    // that an operator has partitioned cannot go concurrently; it goes in an instant.
    const [found] = (await db.query(
      `SELECT relkind = 'I' AS partitioned FROM pg_class WHERE oid = to_regclass('purchases_email_idx')`,
    )) as [{ partitioned: boolean } | undefined];
    if (found) await db.query(`DROP INDEX ${found.partitioned ? '' : 'CONCURRENTLY'} purchases_email_idx`);
  }

  async down(db: QueryRunner) {
    await db.query(`CREATE INDEX purchases_email_idx ON purchases (lower(email))`);
  }
}
