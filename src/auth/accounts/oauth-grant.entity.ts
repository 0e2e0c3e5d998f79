import {
  Check,
  Column,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryGeneratedColumn,
  type Relation,
} from 'typeorm';
import { User } from './user.entity';
import { OauthApplication } from './oauth-application.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

/** The permissions that a user allows an app. */
@PersonalData({ type: 'oauth_grant' })
@StoredColumns({
  columns: [
    'id',
    'user_id',
    'client_id',
    'scopes',
    'may_start_games',
    'implicit_allowed',
    'created_at',
    'revoked_at',
  ],
  why: 'store a consent',
  for_how_long: 'as long as the account',
  after_erasure: 'erased',
})
@Entity('oauth_grants')
@Check('oauth_grants_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Index('oauth_grants_live_key', ['user_id', 'client_id'], { unique: true, where: 'revoked_at IS NULL' })
@Index('oauth_grants_user_id_idx', ['user_id'])
@Index('oauth_grants_client_id_idx', ['client_id'])
export class OauthGrant {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('bigint')
  user_id: number;

  @Column('text')
  client_id: string;

  @Column('text', { array: true })
  scopes: string[];

  /** Whether the user allowed the app to issue JWTs for games. */
  @Column('boolean', { default: false })
  may_start_games: boolean;

  /** Whether the user allowed tokens in the redirect URI as well, not only codes. */
  @Column('boolean', { default: false })
  implicit_allowed: boolean;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ nullable: true })
  revoked_at: string | null;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;

  @ManyToOne(() => OauthApplication, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'client_id' })
  application?: Relation<OauthApplication>;
}
