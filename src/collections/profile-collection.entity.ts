import { Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Collection } from './collection.entity';

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
