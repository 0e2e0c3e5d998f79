import { Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Collection } from './collection.entity';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

@PersonalData({ type: 'profile_collection', erasure: 'delete' })
@StoredColumns({
  columns: ['collection_id', 'user_id'],
  why: 'show a collection on a profile',
  for_how_long: 'until it is hidden',
  after_erasure: 'erased',
})
@Entity('profile_collections')
@Index('profile_collections_user_id_idx', ['user_id'])
export class ProfileCollection {
  @PrimaryColumn('bigint')
  collection_id: number;

  @PrimaryColumn('bigint')
  user_id: number;

  @ManyToOne(() => Collection, { onDelete: 'CASCADE' })
  collection?: Relation<Collection>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
