import { Check, Column, Entity, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../../games/game.entity';
import { StoredColumns } from '../../platform/database/personal-data';

/** The earnings of a game in minor units, updated in the transaction of each purchase. */
@StoredColumns({
  columns: ['game_id', 'currency', 'amount'],
  why: 'earnings of a game',
  for_how_long: 'as long as the game',
})
@Entity('game_earnings')
@Check('game_earnings_currency_check', `currency ~ '^[A-Z]{3}$'`)
@Check('game_earnings_amount_check', 'amount >= 0')
@Check('game_earnings_amount_max', 'amount <= 9007199254740991')
export class GameEarning {
  @PrimaryColumn('bigint')
  game_id: number;

  @PrimaryColumn('text')
  currency: string;

  @Column('bigint')
  amount: number;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  game?: Relation<Game>;
}
