import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PurchaseReferences20260302000100 implements MigrationInterface {
  name = 'PurchaseReferences20260302000100';

  async up(db: QueryRunner) {
    // Not a column of purchases: a partitioned table can keep no value unique but its partition column.
    await db.query(`
      CREATE TABLE purchase_references (
        reference text CONSTRAINT purchase_references_pkey PRIMARY KEY,
        purchase_id bigint NOT NULL
          CONSTRAINT purchase_references_purchase_id_fkey REFERENCES purchases ON DELETE CASCADE,
        CONSTRAINT purchase_references_reference_check CHECK (length(reference) BETWEEN 1 AND 200)
      )`);
    await db.query(
      `CREATE UNIQUE INDEX purchase_references_purchase_id_key ON purchase_references (purchase_id)`,
    );
  }

  async down(db: QueryRunner) {
    await db.query(`DROP TABLE purchase_references`);
  }
}
