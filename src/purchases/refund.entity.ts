import { Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { PersonalData, StoredColumns } from '../platform/database/personal-data';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { Purchase } from './purchase.entity';

/** A refund that this service made. Imported refunds have no row. */
@PersonalData({ type: 'refund' })
@StoredColumns(
  {
    columns: ['purchase_id', 'refunded_at'],
    why: 'show sellers when a sale was refunded',
    for_how_long: 'as long as the purchase',
    after_erasure: 'stay',
  },
  {
    columns: ['user_id'],
    why: 'show sellers who refunded a sale',
    for_how_long: 'as long as the purchase',
    after_erasure: 'empty',
  },
)
@Entity('refunds')
@Index('refunds_user_id_idx', ['user_id'], { where: 'user_id IS NOT NULL' })
export class Refund {
  @PrimaryColumn('bigint')
  purchase_id: number;

  @TimestampColumn({ default: () => 'now()' })
  refunded_at: string;

  /** The seller who refunded it; null: the store did. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  @ManyToOne(() => Purchase, { onDelete: 'CASCADE' })
  purchase?: Relation<Purchase>;

  @ManyToOne(() => User, { onDelete: 'SET NULL' })
  user?: Relation<User>;
}
