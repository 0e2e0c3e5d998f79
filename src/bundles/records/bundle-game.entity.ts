import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import { Game } from '../../games/game.entity';
import { StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { Bundle } from './bundle.entity';

@StoredColumns({
  columns: ['bundle_id', 'game_id', 'position', 'created_at', 'updated_at'],
  why: 'list the games of a bundle',
  for_how_long: 'as long as the game is in the bundle',
})
@Entity('bundle_games')
@Check('bundle_games_position_check', 'position BETWEEN 1 AND 10000')
@Unique('bundle_games_position_key', ['bundle_id', 'position'], { deferrable: 'INITIALLY IMMEDIATE' })
@Index('bundle_games_game_id_idx', ['game_id'])
export class BundleGame {
  @PrimaryColumn('bigint')
  bundle_id: number;

  @PrimaryColumn('bigint')
  game_id: number;

  /** Positions start at 1 and have no gaps. */
  @Column('integer')
  position: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** Time of the last change of the position. */
  @TimestampColumn({ default: () => 'now()' })
  updated_at: string;

  @ManyToOne(() => Bundle, { onDelete: 'CASCADE' })
  bundle?: Relation<Bundle>;

  @ManyToOne(() => Game)
  game?: Relation<Game>;
}
