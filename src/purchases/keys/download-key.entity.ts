import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { Game } from '../../games/game.entity';
import { User } from '../../auth/accounts/user.entity';
import { Purchase } from '../purchase.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { StoredColumns } from '../../platform/database/personal-data';

@StoredColumns(
  {
    columns: ['email', 'user_id', 'account_id', 'purchase_email'],
    why: 'know who owns a key',
    for_how_long: 'as long as the key',
    after_erasure: 'empty',
  },
  {
    columns: ['label'],
    why: "the seller's note, such as whom the key is for",
    for_how_long: 'as long as the key',
    after_erasure: 'empty on their keys; on other keys, `erased` replaces their name',
  },
  {
    columns: [
      'id',
      'key',
      'game_id',
      'purchase_id',
      'created_at',
      'updated_at',
      'downloads',
      'revoked_at',
      'claimed_at',
      'last_download_at',
      'imported_id',
    ],
    why: 'let its holder download',
    for_how_long: 'as long as the game',
    after_erasure: 'stay: the key works for its holder',
  },
)
@Entity('download_keys')
@Check('download_keys_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('download_keys_key_check', 'length(key) BETWEEN 1 AND 512')
@Check('download_keys_downloads_check', 'downloads >= 0')
@Index('download_keys_key_key', ['key'], { unique: true })
@Index('download_keys_claimed_idx', ['user_id'], { where: 'user_id IS NOT NULL' })
@Index('download_keys_game_id_idx', ['game_id'])
@Index('download_keys_purchase_id_game_id_idx', ['purchase_id', 'game_id', 'created_at', 'id'], {
  where: 'purchase_id IS NOT NULL',
})
@Index('download_keys_account_id_idx', ['account_id', 'game_id', 'created_at', 'id'], {
  where: 'account_id IS NOT NULL AND revoked_at IS NULL',
})
@Index('download_keys_newest_of_account_idx', ['account_id', 'created_at', 'id'], {
  where: 'account_id IS NOT NULL AND revoked_at IS NULL',
})
@Index('download_keys_sold_idx', { synchronize: false })
@Index('download_keys_address_idx', { synchronize: false })
@Index('download_keys_purchase_email_idx', ['purchase_email', 'game_id', 'created_at', 'id'], {
  where: 'purchase_email IS NOT NULL AND revoked_at IS NULL',
})
@Index('download_keys_without_purchase_idx', ['game_id', 'id'], { where: 'purchase_id IS NULL' })
@Index('download_keys_unclaimed_idx', ['game_id'], {
  where: 'purchase_id IS NULL AND email IS NULL AND user_id IS NULL AND revoked_at IS NULL',
})
@Index('download_keys_unowned_address_idx', { synchronize: false })
@Index('download_keys_unowned_purchase_email_idx', { synchronize: false })
export class DownloadKey {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  key: string;

  @Column('bigint')
  game_id: number;

  @Column('bigint', { nullable: true })
  purchase_id: number | null;

  @Column('text', { nullable: true })
  email: string | null;

  /** The account that claimed the key. */
  @Column('bigint', { nullable: true })
  user_id: number | null;

  /** The account that claimed the key, otherwise the purchase's, copied by triggers. */
  @Column('bigint', { nullable: true })
  account_id: number | null;

  /** The purchase's email address in lowercase, copied by triggers. */
  @Column('text', { nullable: true })
  purchase_email: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  /** Null: not changed since it was created. */
  @TimestampColumn({ nullable: true })
  updated_at: string | null;

  @Column('bigint', { default: 0 })
  downloads: number;

  @TimestampColumn({ nullable: true })
  revoked_at: string | null;

  /** Time of the claim by `user_id`; null: unknown. */
  @TimestampColumn({ nullable: true })
  claimed_at: string | null;

  @TimestampColumn({ nullable: true })
  last_download_at: string | null;

  /** Whether the ID is from an import; otherwise, the service assigned it. */
  @Column('boolean', { default: false })
  imported_id: boolean;

  /** The seller's note on keys that were created without a purchase. */
  @Column('text', { nullable: true })
  label: string | null;

  @ManyToOne(() => Game)
  game?: Relation<Game>;

  @ManyToOne(() => Purchase)
  purchase?: Relation<Purchase>;

  @ManyToOne(() => User)
  user?: Relation<User>;
}
