import { Check, Column, Entity, Index, ManyToOne, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { User } from '../accounts/user.entity';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({
  type: 'api_key',
  columns: {
    requests: '(SELECT json_object_agg(day, requests) FROM api_key_requests WHERE api_key_id = t.id)',
  },
})
@StoredColumns({
  columns: [
    'id',
    'key_hash',
    'hint',
    'user_id',
    'scopes',
    'label',
    'created_at',
    'last_used_at',
    'last_used_from',
    'revoked_at',
    'expires_at',
    'grant_id',
    'family_id',
  ],
  why: 'authenticate programs; show the owner which key is used, and from which network',
  for_how_long: 'as long as the account; an expired one for 30 days, that of an app for a day',
  after_erasure: 'erased',
})
@Entity('api_keys')
@Check('api_keys_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('api_keys_key_hash_check', 'octet_length(key_hash) = 32')
@Check(
  'api_keys_last_used_from_check',
  'masklen(last_used_from) <= CASE family(last_used_from) WHEN 4 THEN 24 ELSE 48 END',
)
@Index('api_keys_key_hash_key', ['key_hash'], { unique: true })
@Index('api_keys_user_id_idx', ['user_id'])
@Index('api_keys_grant_id_idx', ['grant_id'], { where: 'grant_id IS NOT NULL' })
@Index('api_keys_expires_at_idx', ['expires_at'], { where: 'expires_at IS NOT NULL' })
export class ApiKey {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bytea')
  key_hash: Buffer;

  /** The first characters of the key, for lists. */
  @Column('text')
  hint: string;

  @Column('bigint')
  user_id: number;

  /** null: the key is unscoped, and permits every endpoint. */
  @Column('text', { array: true, nullable: true })
  scopes: string[] | null;

  @Column('text', { nullable: true })
  label: string | null;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ nullable: true })
  last_used_at: string | null;

  /** The network of the last use: the /24 of an IPv4 address, or the /48 of an IPv6 address. */
  @Column('cidr', { nullable: true })
  last_used_from: string | null;

  @TimestampColumn({ nullable: true })
  revoked_at: string | null;

  /** null: valid until it is revoked. */
  @TimestampColumn({ nullable: true })
  expires_at: string | null;

  /** The grant under which an app holds this key; null: the user's own key. */
  @Column('bigint', { nullable: true })
  grant_id: number | null;

  /** The sign-in whose tokens are revoked together with this key, which an app holds until it is revoked. */
  @Column('uuid', { nullable: true })
  family_id: string | null;

  @ManyToOne(() => OauthGrant, { onDelete: 'CASCADE' })
  grant?: Relation<OauthGrant>;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
