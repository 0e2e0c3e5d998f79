import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';

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
