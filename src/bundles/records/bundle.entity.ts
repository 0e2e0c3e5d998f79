import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../../auth/accounts/user.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';
import { TimestampColumn } from '../../platform/database/timestamp.column';

/** Games that are sold together. Players get a key for one of them when they claim it. */
@PersonalData({ type: 'bundle' })
@StoredColumns(
  {
    columns: ['user_id'],
    why: 'know whose bundle it is',
    for_how_long: 'as long as the bundle',
    after_erasure: 'the ID',
  },
  {
    columns: [
      'id',
      'title',
      'slug',
      'cover_url',
      'min_price',
      'games_count',
      'version',
      'created_at',
      'updated_at',
    ],
    why: 'sell it',
    for_how_long: 'as long as the bundle',
    after_erasure: 'stay: buyers own it',
  },
)
@Entity('bundles')
@Check('bundles_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('bundles_title_check', 'length(title) BETWEEN 1 AND 200')
@Check('bundles_slug_check', `slug ~ '^[A-Za-z0-9_.-]{1,100}$'`)
@Check('bundles_min_price_check', 'min_price BETWEEN 0 AND 9007199254740991')
@Check('bundles_games_count_check', 'games_count BETWEEN 0 AND 10000')
@Index('bundles_user_id_idx', ['user_id'])
export class Bundle {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  user_id: number;

  @Column('text')
  title: string;

  @Column('text')
  slug: string;

  @Column('text', { nullable: true })
  cover_url: string | null;

  /** An amount in minor units. */
  @Column('bigint', { default: 0 })
  min_price: number;

  @Column('integer', { default: 0 })
  games_count: number;

  /** Increases whenever the list of games or its order changes. */
  @Column('bigint', { default: 1 })
  version: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ default: () => 'now()' })
  updated_at: string;

  @ManyToOne(() => User)
  user?: Relation<User>;
}
