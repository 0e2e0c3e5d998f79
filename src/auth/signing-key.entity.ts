import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** A key that JWTs are signed with, from its time until the next key's time. */
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

  @Column('timestamptz', { default: () => 'now()' })
  created_at: string;

  @Column('timestamptz')
  signs_from: string;

  /** Seconds: the longest life of any token that the key signed. */
  @Column('integer')
  token_lifetime: number;
}
