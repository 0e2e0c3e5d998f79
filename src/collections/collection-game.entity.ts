import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';
import { User } from '../auth/accounts/user.entity';
import { Collection } from './collection.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

@StoredColumns(
  {
    columns: ['user_id', 'blurb', 'blurb_user_id'],
    why: 'show who added a game, and why',
    for_how_long: 'as long as the entry',
    after_erasure: "the collection's owner; blurbs that they wrote are cleared",
  },
  {
    columns: ['collection_id', 'game_id', 'sort_key', 'created_at'],
    why: 'list the games',
    for_how_long: 'as long as the entry',
    after_erasure: "stay in other people's collections",
  },
)
@Entity('collection_games')
@Check('collection_games_blurb_check', 'length(blurb) BETWEEN 1 AND 20000')
@Index('collection_games_sort_key_key', { synchronize: false })
@Index('collection_games_game_id_idx', ['game_id'])
@Index('collection_games_user_id_idx', ['user_id'])
@Index('collection_games_blurb_user_id_idx', ['blurb_user_id'], { where: 'blurb_user_id IS NOT NULL' })
export class CollectionGame {
  @PrimaryColumn('bigint')
  collection_id: number;

  @PrimaryColumn('bigint')
  game_id: number;

  /** Orders the entries, with gaps; the position in responses is the rank, counted at read time. */
  @Column('bigint')
  sort_key: number;

  @Column('text', { nullable: true })
  blurb: string | null;

  /** Who last wrote the blurb; null if that is the user who added the game. */
  @Column('bigint', { nullable: true })
  blurb_user_id: number | null;

  @Column('bigint')
  user_id: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @ManyToOne(() => Collection, { onDelete: 'CASCADE' })
  collection?: Relation<Collection>;

  @ManyToOne(() => Game)
  game?: Relation<Game>;

  @ManyToOne(() => User)
  user?: Relation<User>;

  @ManyToOne(() => User, { onDelete: 'SET NULL' })
  blurb_user?: Relation<User>;
}
