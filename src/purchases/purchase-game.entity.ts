import { Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { Purchase } from './purchase.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

@StoredColumns(
  {
    columns: ['email', 'user_id'],
    why: 'copies, to find a purchase by its buyer',
    for_how_long: 'as long as the purchase',
    after_erasure: 'as in `purchases`',
  },
  {
    columns: ['purchase_id', 'game_id', 'sold_at'],
    why: 'record what was bought, and when',
    for_how_long: 'as long as the purchase',
    after_erasure: 'stay',
  },
)
@Entity('purchase_games')
@Index('purchase_games_game_id_email_purchase_id_idx', { synchronize: false })
@Index('purchase_games_user_id_game_id_purchase_id_idx', { synchronize: false })
@Index('purchase_games_newest_idx', ['game_id', 'sold_at', 'purchase_id'], { where: 'sold_at IS NOT NULL' })
export class PurchaseGame {
  @PrimaryColumn('bigint')
  purchase_id: number;

  @PrimaryColumn('bigint')
  game_id: number;

  /** The purchase's user, copied by triggers. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** The purchase's email address, in lowercase. */
  @Column('text')
  email: string;

  /** When the purchase was made, copied by triggers; null if it is neither complete nor refunded. */
  @TimestampColumn({ nullable: true })
  sold_at: string | null;

  @ManyToOne(() => Purchase, { onDelete: 'CASCADE' })
  purchase?: Relation<Purchase>;

  @ManyToOne(() => Game)
  game?: Relation<Game>;
}
