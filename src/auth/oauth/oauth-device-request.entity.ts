import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { OauthApplication } from '../accounts/oauth-application.entity';
import { OauthGrant } from '../accounts/oauth-grant.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** A device that waits for its user to enter a code in a browser. */
@PersonalData({
  type: 'oauth_device_request',
  where: 't.grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $user_id)',
})
@StoredColumns({
  columns: [
    'device_code_hash',
    'user_code',
    'client_id',
    'scopes',
    'code_challenge',
    'interval_seconds',
    'polled_at',
    'expires_at',
    'denied_at',
    'grant_id',
  ],
  why: 'sign a device in',
  for_how_long: 'an hour after it expires',
  after_erasure: 'erased',
})
@Entity('oauth_device_requests')
@Check('oauth_device_requests_device_code_hash_check', 'octet_length(device_code_hash) = 32')
@Index('oauth_device_requests_user_code_key', ['user_code'], { unique: true })
@Index('oauth_device_requests_client_id_idx', ['client_id'])
@Index('oauth_device_requests_grant_id_idx', ['grant_id'])
@Index('oauth_device_requests_expires_at_idx', ['expires_at'])
export class OauthDeviceRequest {
  @PrimaryColumn('bytea')
  device_code_hash: Buffer;

  @Column('text')
  user_code: string;

  @Column('text')
  client_id: string;

  @Column('text', { array: true })
  scopes: string[];

  @Column('text', { nullable: true })
  code_challenge: string | null;

  @Column('integer')
  interval_seconds: number;

  @TimestampColumn({ nullable: true })
  polled_at: string | null;

  @TimestampColumn()
  expires_at: string;

  @TimestampColumn({ nullable: true })
  denied_at: string | null;

  /** The user's consent; null: undecided or denied. */
  @Column('bigint', { nullable: true })
  grant_id: number | null;

  @ManyToOne(() => OauthApplication, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'client_id' })
  application?: Relation<OauthApplication>;

  @ManyToOne(() => OauthGrant, { onDelete: 'CASCADE' })
  grant?: Relation<OauthGrant>;
}
