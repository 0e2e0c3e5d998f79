import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

export const GAME_TYPES = ['default', 'flash', 'unity', 'java', 'html'] as const;
export const GAME_CLASSIFICATIONS = [
  'game',
  'tool',
  'assets',
  'game_mod',
  'physical_game',
  'soundtrack',
  'other',
  'comic',
  'book',
] as const;
export const GAME_TRAITS = [
  'p_windows',
  'p_linux',
  'p_osx',
  'p_android',
  'can_be_bought',
  'has_demo',
  'in_press_system',
] as const;
export const GAME_VISIBILITIES = ['public', 'restricted', 'private'] as const;

const quotedList = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');

@PersonalData({ type: 'game', columns: { type: null, game_type: 't.type' } })
@StoredColumns(
  {
    columns: ['user_id', 'owner_name'],
    why: 'know whose game it is',
    for_how_long: 'as long as the game',
    after_erasure: "the ID, and the account's new name",
  },
  {
    columns: [
      'id',
      'slug',
      'title',
      'short_text',
      'type',
      'classification',
      'traits',
      'visibility',
      'published_at',
      'created_at',
      'min_price',
      'cover_url',
      'views_count',
      'downloads_count',
      'purchases_count',
    ],
    why: 'sell it',
    for_how_long: 'as long as the game',
    after_erasure: 'stay: buyers own it',
  },
)
@Entity('games')
@Check('games_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('games_slug_check', `slug ~ '^[A-Za-z0-9_.-]{1,100}$'`)
@Check('games_type_check', `type IN (${quotedList(GAME_TYPES)})`)
@Check('games_classification_check', `classification IN (${quotedList(GAME_CLASSIFICATIONS)})`)
@Check('games_traits_check', `traits <@ ARRAY[${quotedList(GAME_TRAITS)}]`)
@Check('games_visibility_check', `visibility IN (${quotedList(GAME_VISIBILITIES)})`)
@Check(
  'games_counts_check',
  'min_price >= 0 AND views_count >= 0 AND downloads_count >= 0 AND purchases_count >= 0',
)
@Index('games_slug_key', ['user_id', 'slug'], { unique: true })
@Index('games_hidden_idx', { synchronize: false })
@Index('games_hash_idx', { synchronize: false })
export class Game {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  user_id: number;

  /** The username of the owner, copied by triggers. */
  @Column('text')
  owner_name: string;

  @Column('text')
  slug: string;

  @Column('text')
  title: string;

  @Column('text', { nullable: true })
  short_text: string | null;

  @Column('text', { default: 'default' })
  type: (typeof GAME_TYPES)[number];

  @Column('text', { default: 'game' })
  classification: (typeof GAME_CLASSIFICATIONS)[number];

  @Column('text', { array: true, default: '{}' })
  traits: (typeof GAME_TRAITS)[number][];

  @Column('text', { default: 'public' })
  visibility: (typeof GAME_VISIBILITIES)[number];

  @TimestampColumn({ nullable: true })
  published_at: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @Column('bigint', { default: 0 })
  min_price: number;

  @Column('text', { nullable: true })
  cover_url: string | null;

  @Column('bigint', { default: 0 })
  views_count: number;

  @Column('bigint', { default: 0 })
  downloads_count: number;

  @Column('bigint', { default: 0 })
  purchases_count: number;

  @ManyToOne(() => User)
  user?: Relation<User>;
}
