import { Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../users/user.entity';
import { Game } from './game.entity';

@Entity('game_admins')
@Index('game_admins_user_id_idx', ['user_id', 'game_id'])
export class GameAdmin {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'game_admins_pkey' })
  game_id: number;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'game_admins_pkey' })
  user_id: number;

  @ManyToOne(() => Game, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'game_id', foreignKeyConstraintName: 'game_admins_game_id_fkey' })
  game?: Relation<Game>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'game_admins_user_id_fkey' })
  user?: Relation<User>;
}
