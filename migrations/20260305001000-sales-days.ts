import type { MigrationInterface, QueryRunner } from 'typeorm';

const SHARES = `
  SELECT pg.purchase_id, pg.game_id, p.currency,
         p.amount / count(*) OVER (PARTITION BY pg.purchase_id)
           + (row_number() OVER (PARTITION BY pg.purchase_id ORDER BY pg.game_id)
              <= p.amount % count(*) OVER (PARTITION BY pg.purchase_id))::int AS amount`;
const OF = `
  FROM purchase_games pg JOIN purchases p ON p.id = pg.purchase_id
  WHERE p.status = 'complete'`;

export class SalesDays20260305001000 implements MigrationInterface {
  name = 'SalesDays20260305001000';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE TABLE sales_days (
        game_id bigint NOT NULL CONSTRAINT sales_days_game_id_fkey REFERENCES games ON DELETE CASCADE,
        day date NOT NULL,
        currency text NOT NULL,
        purchases bigint NOT NULL,
        amount bigint NOT NULL,
        CONSTRAINT sales_days_pkey PRIMARY KEY (game_id, day, currency),
        CONSTRAINT sales_days_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
        CONSTRAINT sales_days_purchases_check CHECK (purchases >= 0),
        CONSTRAINT sales_days_amount_check CHECK (amount BETWEEN 0 AND 9007199254740991)
      )`);
    await db.query(
      `CREATE OR REPLACE VIEW purchase_shares AS ${SHARES}, (p.created_at AT TIME ZONE 'UTC')::date AS day ${OF}`,
    );
    // All that is stored. Whoever sells keeps the days from here on.
    await db.query(`
      INSERT INTO sales_days (game_id, currency, day, purchases, amount)
      SELECT game_id, currency, day, count(*), sum(amount) FROM purchase_shares GROUP BY 1, 2, 3`);
  }

  async down(db: QueryRunner) {
    await db.query(`DROP VIEW purchase_shares`);
    await db.query(`CREATE VIEW purchase_shares AS ${SHARES} ${OF}`);
    await db.query(`DROP TABLE sales_days`);
  }
}
