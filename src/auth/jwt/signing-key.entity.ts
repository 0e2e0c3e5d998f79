import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import { TimestampColumn } from '../../platform/database/timestamp.column';
import { StoredColumns } from '../../platform/database/personal-data';

/** A key that signs JWTs from its `signs_from` until that of the next key. */
@StoredColumns({
  columns: ['kid', 'public_key', 'private_key', 'created_at', 'signs_from', 'token_lifetime'],
  why: 'sign tokens',
  for_how_long: 'until the last token expires',
})
@Entity('signing_keys')
@Check('signing_keys_public_key_check', 'octet_length(public_key) = 32')
@Check('signing_keys_token_lifetime_check', 'token_lifetime > 0')
export class SigningKey {
  /** The key's RFC 7638 thumbprint. */
  @PrimaryColumn('text')
  kid: string;

  @Column('bytea')
  public_key: Buffer;

  @Column('bytea')
  private_key: Buffer;

  @TimestampColumn({ default: () => 'now()' })
  created_at: string;

  @TimestampColumn()
  signs_from: string;

  /** The longest lifetime, in seconds, of any token signed with the key. */
  @Column('integer')
  token_lifetime: number;
}
