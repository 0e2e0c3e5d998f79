import { Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { Purchase } from './purchase.entity';

@Entity('purchase_games')
@Index('purchase_games_game_id_idx', ['game_id'])
export class PurchaseGame {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'purchase_games_pkey' })
  purchase_id: number;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'purchase_games_pkey' })
  game_id: number;

  @ManyToOne(() => Purchase, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'purchase_id', foreignKeyConstraintName: 'purchase_games_purchase_id_fkey' })
  purchase?: Relation<Purchase>;

  @ManyToOne(() => Game)
  @JoinColumn({ name: 'game_id', foreignKeyConstraintName: 'purchase_games_game_id_fkey' })
  game?: Relation<Game>;
}
