import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

export const COLLECTION_LAYOUTS = ['grid', 'list'] as const;

@PersonalData({ type: 'collection', has_long_texts: true })
@StoredColumns({
  columns: [
    'id',
    'user_id',
    'title',
    'private',
    'description',
    'layout',
    'games_count',
    'created_at',
    'updated_at',
    'imported_id',
  ],
  why: 'show a collection',
  for_how_long: 'until its owner deletes it',
  after_erasure: 'erased, even if other users edit it',
})
@Entity('collections')
@Check('collections_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('collections_title_check', 'length(title) BETWEEN 1 AND 60')
@Check('collections_description_check', 'length(description) BETWEEN 1 AND 20000')
@Check('collections_layout_check', `layout IN ('grid', 'list')`)
@Check('collections_games_count_check', 'games_count >= 0')
@Index('collections_user_id_idx', ['user_id'])
export class Collection {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  user_id: number;

  @Column('text')
  title: string;

  @Column('boolean', { default: false })
  private: boolean;

  @Column('text', { nullable: true })
  description: string | null;

  @Column('text', { default: 'grid' })
  layout: (typeof COLLECTION_LAYOUTS)[number];

  @Column('integer', { default: 0 })
  games_count: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ default: () => 'now()' })
  updated_at: string;

  /** Whether an import set the ID; otherwise the service assigned it. */
  @Column('boolean', { default: false })
  imported_id: boolean;

  @ManyToOne(() => User)
  user?: Relation<User>;
}
