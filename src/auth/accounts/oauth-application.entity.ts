import { Check, Column, Entity, Index, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { User } from './user.entity';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({ type: 'oauth_application' })
@StoredColumns({
  columns: [
    'client_id',
    'user_id',
    'name',
    'redirect_uris',
    'scopes',
    'implicit_allowed',
    'may_start_games',
    'created_at',
  ],
  why: 'identify an app and its owner',
  for_how_long: 'until its owner deletes it',
  after_erasure: 'erased, with the grants of its users',
})
@Entity('oauth_applications')
@Check('oauth_applications_client_id_check', 'length(client_id) BETWEEN 1 AND 200')
@Check('oauth_applications_name_check', 'length(name) BETWEEN 1 AND 100')
@Index('oauth_applications_user_id_idx', ['user_id'])
export class OauthApplication {
  @PrimaryColumn('text')
  client_id: string;

  @Column('bigint')
  user_id: number;

  @Column('text')
  name: string;

  @Column('text', { array: true })
  redirect_uris: string[];

  /** The scopes that the app may request. */
  @Column('text', { array: true })
  scopes: string[];

  /** Whether the app may receive tokens in the redirect URI, as old clients do. */
  @Column('boolean', { default: false })
  implicit_allowed: boolean;

  /** Whether the app may request permission to issue JWTs of its users for games. */
  @Column('boolean', { default: false })
  may_start_games: boolean;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  user?: Relation<User>;
}
