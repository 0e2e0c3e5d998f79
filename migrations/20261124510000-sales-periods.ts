import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Days and months in one table. No release has the table of days alone. */
export class SalesPeriods20261124510000 implements MigrationInterface {
  name = 'SalesPeriods20261124510000';

  async up(db: QueryRunner) {
    await db.query(`
      CREATE TABLE sales_periods (
        game_id bigint NOT NULL CONSTRAINT sales_periods_game_id_fkey REFERENCES games ON DELETE CASCADE,
        unit text NOT NULL,
        first_day date NOT NULL,
        currency text NOT NULL,
        purchases bigint NOT NULL,
        amount bigint NOT NULL,
        CONSTRAINT sales_periods_pkey PRIMARY KEY (game_id, unit, first_day, currency),
        CONSTRAINT sales_periods_unit_check CHECK (unit IN ('day', 'month')),
        CONSTRAINT sales_periods_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
        CONSTRAINT sales_periods_purchases_check CHECK (purchases >= 0),
        CONSTRAINT sales_periods_amount_check CHECK (amount BETWEEN 0 AND 9007199254740991)
      )`);
    await db.query(`
      INSERT INTO sales_periods (game_id, unit, first_day, currency, purchases, amount)
      SELECT game_id, unit, date_trunc(unit, day::timestamp)::date, currency, sum(purchases), sum(amount)
      FROM sales_days, unnest('{day,month}'::text[]) AS unit GROUP BY 1, 2, 3, 4`);
    await db.query(`DROP TABLE sales_days`);
  }

  async down(db: QueryRunner) {
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
    await db.query(`
      INSERT INTO sales_days (game_id, day, currency, purchases, amount)
      SELECT game_id, first_day, currency, purchases, amount FROM sales_periods WHERE unit = 'day'`);
    await db.query(`DROP TABLE sales_periods`);
  }
}
