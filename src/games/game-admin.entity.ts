import { Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Game } from './game.entity';

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
