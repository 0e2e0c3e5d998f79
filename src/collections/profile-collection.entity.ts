import { Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../users/user.entity';
import { Collection } from './collection.entity';

/** A collection that is on the profile of a user. */
@Entity('profile_collections')
@Index('profile_collections_user_id_idx', ['user_id'])
export class ProfileCollection {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'profile_collections_pkey' })
  collection_id: number;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'profile_collections_pkey' })
  user_id: number;

  @ManyToOne(() => Collection, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'collection_id', foreignKeyConstraintName: 'profile_collections_collection_id_fkey' })
  collection?: Relation<Collection>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'profile_collections_user_id_fkey' })
  user?: Relation<User>;
}
