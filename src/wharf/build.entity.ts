import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { Game } from '../games/game.entity';

export const BUILD_STATES = ['started', 'processing', 'completed', 'failed'] as const;

/** A channel is the set of builds with its name; the newest has the highest id. */
@Entity('builds')
@Check('builds_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('builds_channel_name_check', 'length(channel_name) BETWEEN 1 AND 200')
@Check('builds_user_version_check', 'length(user_version) BETWEEN 1 AND 200')
@Check('builds_state_check', `state IN ('started', 'processing', 'completed', 'failed')`)
@Index('builds_newest_idx', { synchronize: false })
@Index('builds_game_id_idx', ['game_id'])
export class Build {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  game_id: number;

  @Column('text')
  channel_name: string;

  @Column('text', { nullable: true })
  user_version: string | null;

  @Column('text', { default: 'completed' })
  state: (typeof BUILD_STATES)[number];

  @Column('timestamptz', { default: () => 'now()' })
  created_at: string;

  @ManyToOne(() => Game)
  game?: Relation<Game>;
}
