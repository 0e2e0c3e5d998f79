import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { ApiKey } from '../keys/api-key.entity';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({
  type: 'oauth_refresh_token',
  where: 't.grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $user_id)',
})
@StoredColumns({
  columns: [
    'token_hash',
    'grant_id',
    'family_id',
    'scopes',
    'api_key_id',
    'expires_at',
    'family_ends_at',
    'used_at',
    'successor_hash',
    'answer',
  ],
  why: 'renew a token; detect a stolen one',
  for_how_long: '180 days at most',
  after_erasure: 'erased',
})
@Entity('oauth_refresh_tokens')
@Check('oauth_refresh_tokens_token_hash_check', 'octet_length(token_hash) = 32')
@Index('oauth_refresh_tokens_grant_id_idx', ['grant_id'])
@Index('oauth_refresh_tokens_family_id_idx', ['family_id'])
@Index('oauth_refresh_tokens_api_key_id_idx', ['api_key_id'])
@Index('oauth_refresh_tokens_expires_at_idx', ['expires_at'])
export class OauthRefreshToken {
  @PrimaryColumn('bytea')
  token_hash: Buffer;

  @Column('bigint')
  grant_id: number;

  @Column('uuid')
  family_id: string;

  @Column('text', { array: true })
  scopes: string[];

  /** The access token that was issued with this refresh token. */
  @Column('bigint', { nullable: true })
  api_key_id: number | null;

  @TimestampColumn()
  expires_at: string;

  /** The expiry of all tokens from the same sign-in. */
  @TimestampColumn({ default: () => "(now() + '180 days')" })
  family_ends_at: string;

  @TimestampColumn({ nullable: true })
  used_at: string | null;

  @Column('bytea', { nullable: true })
  successor_hash: Buffer | null;

  /**
   * The tokens that replaced this one, encrypted with it, for a client that retries. The column is named
   * `answer`, because replicas of 0.1 read it.
   */
  @Column('bytea', { name: 'answer', nullable: true })
  response: Buffer | null;

  @ManyToOne(() => OauthGrant, { onDelete: 'CASCADE' })
  grant?: Relation<OauthGrant>;

  @ManyToOne(() => ApiKey, { onDelete: 'SET NULL' })
  api_key?: Relation<ApiKey>;
}
