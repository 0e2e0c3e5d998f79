import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Purchase } from './purchase.entity';
import { StoredColumns } from '../platform/database/personal-data';

/**
 * A checkout's own ID for a sale. Not a column of purchases, because it must also be unique if purchases are
 * partitioned.
 */
@StoredColumns({
  columns: ['reference', 'purchase_id'],
  why: "find a sale by the checkout's own ID",
  for_how_long: 'as long as the purchase',
  after_erasure: 'stay, unless the reference contains the username, the display name or an email address',
})
@Entity('purchase_references')
@Check('purchase_references_reference_check', 'length(reference) BETWEEN 1 AND 200')
@Index('purchase_references_purchase_id_key', ['purchase_id'], { unique: true })
export class PurchaseReference {
  @PrimaryColumn('text')
  reference: string;

  @Column('bigint')
  purchase_id: number;

  @ManyToOne(() => Purchase, { onDelete: 'CASCADE' })
  purchase?: Relation<Purchase>;
}
