import { Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../users/user.entity';
import { Collection } from './collection.entity';

@Entity('collection_admins')
@Index('collection_admins_user_id_idx', ['user_id', 'collection_id'])
export class CollectionAdmin {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'collection_admins_pkey' })
  collection_id: number;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'collection_admins_pkey' })
  user_id: number;

  @ManyToOne(() => Collection, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'collection_id', foreignKeyConstraintName: 'collection_admins_collection_id_fkey' })
  collection?: Relation<Collection>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'collection_admins_user_id_fkey' })
  user?: Relation<User>;
}
