import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { Purchase } from './purchase.entity';

@Entity('purchase_games')
@Index('purchase_games_game_id_email_purchase_id_idx', { synchronize: false })
@Index('purchase_games_user_id_game_id_purchase_id_idx', { synchronize: false })
@Index('purchase_games_newest_idx', ['game_id', 'sold_at', 'purchase_id'], { where: 'sold_at IS NOT NULL' })
export class PurchaseGame {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'purchase_games_pkey' })
  purchase_id: number;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'purchase_games_pkey' })
  game_id: number;

  /** The purchase's user, copied by triggers. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** The purchase's address, in lower case. */
  @Column('text')
  email: string;

  /** When the purchase was made, copied by triggers; null: it is neither complete nor refunded. */
  @Column('timestamptz', { nullable: true })
  sold_at: string | null;

  @ManyToOne(() => Purchase, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'purchase_id', foreignKeyConstraintName: 'purchase_games_purchase_id_fkey' })
  purchase?: Relation<Purchase>;

  @ManyToOne(() => Game)
  @JoinColumn({ name: 'game_id', foreignKeyConstraintName: 'purchase_games_game_id_fkey' })
  game?: Relation<Game>;
}
