import { Check, Column, Entity, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../../games/game.entity';
import { StoredColumns } from '../../platform/database/personal-data';

/**
 * Completed purchases of a game in a day and in a month of UTC, and its share of them in minor units; updated in the
 * transaction of each purchase.
 */
@StoredColumns({
  columns: ['game_id', 'unit', 'first_day', 'currency', 'purchases', 'amount'],
  why: 'earnings of a game per day and month',
  for_how_long: 'as long as the game',
})
@Entity('sales_periods')
@Check('sales_periods_unit_check', `unit IN ('day', 'month')`)
@Check('sales_periods_currency_check', `currency ~ '^[A-Z]{3}$'`)
@Check('sales_periods_purchases_check', 'purchases >= 0')
@Check('sales_periods_amount_check', 'amount BETWEEN 0 AND 9007199254740991')
export class SalesPeriod {
  @PrimaryColumn('bigint')
  game_id: number;

  @PrimaryColumn('text')
  unit: 'day' | 'month';

  @PrimaryColumn('date')
  first_day: string;

  @PrimaryColumn('text')
  currency: string;

  @Column('bigint')
  purchases: number;

  @Column('bigint')
  amount: number;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  game?: Relation<Game>;
}
