import { Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Collection } from './collection.entity';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';

@PersonalData({ type: 'collection_admin', erasure: 'delete' })
@StoredColumns({
  columns: ['collection_id', 'user_id'],
  why: 'let another user edit',
  for_how_long: 'until the user is removed',
  after_erasure: 'erased',
})
@Entity('collection_admins')
@Index('collection_admins_user_id_idx', ['user_id', 'collection_id'])
export class CollectionAdmin {
  @PrimaryColumn('bigint')
  collection_id: number;

  @PrimaryColumn('bigint')
  user_id: number;

  @ManyToOne(() => Collection, { onDelete: 'CASCADE' })
  collection?: Relation<Collection>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
