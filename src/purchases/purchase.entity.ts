import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Bundle } from '../bundles/records/bundle.entity';
import { TimestampColumn } from '../platform/database/timestamp.column';
import { StoredColumns } from '../platform/database/personal-data';

export const PURCHASE_TYPES = ['game', 'bundle', 'sub_product'] as const;
export const PURCHASE_STATUSES = ['complete', 'pending', 'failed', 'refunded'] as const;

@StoredColumns(
  {
    columns: ['email', 'user_id'],
    why: 'know the buyer',
    for_how_long: 'as long as the purchase',
    after_erasure: '`nobody@erased.invalid`, and no account',
  },
  {
    columns: [
      'id',
      'purchase_type',
      'created_at',
      'source',
      'currency',
      'amount',
      'sale_rate',
      'quantity',
      'status',
      'donation',
      'bundle_id',
      'imported_id',
    ],
    why: 'accounting',
    for_how_long: 'as long as required by law',
    after_erasure: 'stay',
  },
)
@Entity('purchases')
@Check('purchases_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('purchases_purchase_type_check', `purchase_type IN ('game', 'bundle', 'sub_product')`)
@Check('purchases_currency_check', `currency ~ '^[A-Z]{3}$'`)
@Check('purchases_amount_check', 'amount BETWEEN 0 AND 9007199254740991')
@Check('purchases_sale_rate_check', 'sale_rate BETWEEN 0 AND 100')
@Check('purchases_quantity_check', 'quantity >= 1')
@Check('purchases_status_check', `status IN ('complete', 'pending', 'failed', 'refunded')`)
@Index('purchases_user_id_idx', ['user_id'], { where: 'user_id IS NOT NULL' })
@Index('purchases_bundle_id_idx', ['bundle_id'], { where: 'bundle_id IS NOT NULL' })
@Index('purchases_bundles_of_user_idx', ['user_id', 'bundle_id', 'created_at', 'id'], {
  where: 'bundle_id IS NOT NULL AND user_id IS NOT NULL',
})
@Index('purchases_bundles_of_email_idx', { synchronize: false })
export class Purchase {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text', { default: 'game' })
  purchase_type: (typeof PURCHASE_TYPES)[number];

  @Column('text')
  email: string;

  @Column('bigint', { nullable: true })
  user_id: number | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @Column('text')
  source: string;

  @Column('text')
  currency: string;

  @Column('bigint')
  amount: number;

  @Column('double precision', { default: 0 })
  sale_rate: number;

  @Column('integer', { default: 1 })
  quantity: number;

  @Column('text', { default: 'complete' })
  status: (typeof PURCHASE_STATUSES)[number];

  @Column('boolean', { default: false })
  donation: boolean;

  /** The bundle that was sold; its games at that time are in `purchase_games`. */
  @Column('bigint', { nullable: true })
  bundle_id: number | null;

  /** Whether the ID is from an import; otherwise, the service assigned it. */
  @Column('boolean', { default: false })
  imported_id: boolean;

  @ManyToOne(() => User)
  user?: Relation<User>;

  @ManyToOne(() => Bundle)
  bundle?: Relation<Bundle>;
}
