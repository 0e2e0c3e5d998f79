import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import type { OperatorPermission } from './operator-may';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { StoredColumns } from '../../platform/database/personal-data';

/** A credential of the operator's programs, which belongs to no user. */
@StoredColumns({
  columns: ['id', 'name', 'token_hash', 'hint', 'rights', 'created_at', 'last_used_at', 'revoked_at'],
  why: "authenticate the operator's programs",
  for_how_long: 'as long as the operator wants',
})
@Entity('operator_tokens')
@Check('operator_tokens_id_check', 'id BETWEEN 1 AND 9007199254740991')
@Check('operator_tokens_token_hash_check', 'octet_length(token_hash) = 32')
@Check(
  'operator_tokens_rights_check',
  "cardinality(rights) > 0 AND rights <@ '{import,purchases,users,metrics}'",
)
@Index('operator_tokens_token_hash_key', ['token_hash'], { unique: true })
@Index('operator_tokens_name_key', ['name'], { unique: true, where: 'revoked_at IS NULL' })
export class OperatorToken {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  name: string;

  @Column('bytea')
  token_hash: Buffer;

  /** The first characters of the token, for lists. */
  @Column('text')
  hint: string;

  // Replicas of version 0.1 read the column by this name.
  @Column('text', { name: 'rights', array: true })
  permissions: OperatorPermission[];

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn({ nullable: true })
  last_used_at: string | null;

  @TimestampColumn({ nullable: true })
  revoked_at: string | null;
}
