import { Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Game } from './game.entity';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

@PersonalData({ type: 'game_admin', erasure: 'delete' })
@StoredColumns({
  columns: ['game_id', 'user_id'],
  why: 'let another user edit',
  for_how_long: 'until the user is removed',
  after_erasure: 'erased',
})
@Entity('game_admins')
@Index('game_admins_user_id_idx', ['user_id', 'game_id'])
export class GameAdmin {
  @PrimaryColumn('bigint')
  game_id: number;

  @PrimaryColumn('bigint')
  user_id: number;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  game?: Relation<Game>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
