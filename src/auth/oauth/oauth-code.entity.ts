import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({
  type: 'oauth_code',
  where: 't.grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $user_id)',
})
@StoredColumns({
  columns: [
    'code_hash',
    'grant_id',
    'scopes',
    'redirect_uri',
    'code_challenge',
    'family_id',
    'expires_at',
    'used_at',
  ],
  why: 'exchange a consent for a token',
  for_how_long: 'a day',
  after_erasure: 'erased',
})
@Entity('oauth_codes')
@Check('oauth_codes_code_hash_check', 'octet_length(code_hash) = 32')
@Index('oauth_codes_grant_id_idx', ['grant_id'])
@Index('oauth_codes_expires_at_idx', ['expires_at'])
export class OauthCode {
  @PrimaryColumn('bytea')
  code_hash: Buffer;

  @Column('bigint')
  grant_id: number;

  @Column('text', { array: true })
  scopes: string[];

  /** The request's redirect_uri; null if it was omitted, or for a device. */
  @Column('text', { nullable: true })
  redirect_uri: string | null;

  /** The S256 challenge; null for a device without PKCE. */
  @Column('text', { nullable: true })
  code_challenge: string | null;

  /** All tokens issued for this code share this ID. */
  @Column('uuid')
  family_id: string;

  @TimestampColumn()
  expires_at: string;

  @TimestampColumn({ nullable: true })
  used_at: string | null;

  @ManyToOne(() => OauthGrant, { onDelete: 'CASCADE' })
  grant?: Relation<OauthGrant>;
}
