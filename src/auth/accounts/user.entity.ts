import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { PersonalData, StoredColumns } from '../../platform/database/personal-data';

@PersonalData({
  type: 'user',
  where: 't.id = $user_id',
  columns: { password_hash: null, has_password: 't.password_hash IS NOT NULL' },
})
@StoredColumns(
  {
    columns: ['id', 'created_at', 'developer', 'token_generation'],
    why: 'identify an account',
    for_how_long: 'as long as the account',
    after_erasure: 'stay',
  },
  {
    columns: ['username', 'display_name', 'cover_url', 'gamer', 'press_user', 'password_hash'],
    why: 'display a user; sign the user in',
    for_how_long: 'as long as the account',
    after_erasure: '`erased-ID`; the others are empty or their default',
  },
)
@Entity('users')
@Check('users_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('users_username_check', `username ~ '^[A-Za-z0-9_-]{1,63}$'`)
@Index('users_username_key', { synchronize: false })
export class User {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  username: string;

  @Column('text', { nullable: true })
  display_name: string | null;

  @Column('boolean', { default: true })
  gamer: boolean;

  @Column('boolean', { default: false })
  developer: boolean;

  @Column('boolean', { default: false })
  press_user: boolean;

  @Column('text', { nullable: true })
  cover_url: string | null;

  @Column('text', { nullable: true })
  password_hash: string | null;

  /** JWTs of other generations are revoked. */
  @Column('integer', { default: 0 })
  token_generation: number;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;
}
