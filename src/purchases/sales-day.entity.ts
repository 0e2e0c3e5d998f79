import { Check, Column, Entity, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';

/** Completed purchases of a game on a day in UTC, and its share of them in minor units; updated in the transaction of each purchase. */
@Entity('sales_days')
@Check('sales_days_currency_check', `currency ~ '^[A-Z]{3}$'`)
@Check('sales_days_purchases_check', 'purchases >= 0')
@Check('sales_days_amount_check', 'amount BETWEEN 0 AND 9007199254740991')
export class SalesDay {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'sales_days_pkey' })
  game_id: number;

  @PrimaryColumn('date', { primaryKeyConstraintName: 'sales_days_pkey' })
  day: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'sales_days_pkey' })
  currency: string;

  @Column('bigint')
  purchases: number;

  @Column('bigint')
  amount: number;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'game_id', foreignKeyConstraintName: 'sales_days_game_id_fkey' })
  game?: Relation<Game>;
}
