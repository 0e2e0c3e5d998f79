import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, type Repository } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { violatedConstraint } from '../../platform/database/sqlstates';
import { read, statement } from '../../platform/database/statement';
import { lowerAscii } from '../../platform/formats/lower-ascii';
import { lockUser } from '../accounts/lock-user';
import { lockSession } from '../accounts/lock-session';
import { User } from '../accounts/user.entity';
import { UserEmail } from '../accounts/user-email.entity';
import { Identity } from './identity.entity';
import { IdentityProvider, type ProviderAccount } from './identity-provider';

/** The limit for one user. */
const MAX_IDENTITIES = 10;
const MAX_IDENTITY_LABEL_CHARACTERS = 200;
const MAX_NAME_CHARACTERS = 40;
const NAME_ATTEMPTS = 20;

export type ListedIdentity = Pick<Identity, 'id' | 'issuer' | 'label' | 'created_at' | 'used_at'>;

const SIGN_IN = statement<{ id: number; user_id: number }>(
  'use_identity',
  'UPDATE identities SET used_at = now() WHERE issuer = $issuer AND subject = $subject RETURNING id, user_id',
);

const HAS_PASSWORD = read(
  'has_password',
  'SELECT 1 FROM users WHERE id = $user_id AND password_hash IS NOT NULL',
);

const FIND_IDENTITY = read(
  'known_identity',
  'SELECT 1 FROM identities WHERE issuer = $issuer AND subject = $subject',
);

/**
 * Whether the user could still sign in without the identity: with a password or another identity of the
 * provider.
 */
const OTHER_WAY_IN = `(NOT $oidc_only AND EXISTS (SELECT FROM users u WHERE u.id = $user_id AND u.password_hash IS NOT NULL)
  OR EXISTS (SELECT FROM identities other
    WHERE other.user_id = $user_id AND other.id <> $identity_id AND other.issuer = ANY ($issuers::text[])))`;

const DISCONNECT = statement<{ id: number }>(
  'disconnect_identity',
  `DELETE FROM identities WHERE user_id = $user_id AND id = $identity_id AND ${OTHER_WAY_IN} RETURNING id`,
);

export type Connection = { id: number } | { problem: 'taken' | 'too many' };
export type SignUp = { id: number; user_id: number } | { problem: 'address' | 'connected' };

/**
 * Which account at the identity provider signs in which user. Only the issuer and the subject identify an
 * account.
 */
@Injectable()
export class IdentitiesService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Identity) private readonly identities: Repository<Identity>,
    private readonly settings: Settings,
    private readonly provider: IdentityProvider,
  ) {}

  /** The user of a known identity. */
  signIn({ issuer, subject }: Pick<ProviderAccount, 'issuer' | 'subject'>) {
    return this.database.row(SIGN_IN, { issuer, subject });
  }

  async isLinked({ issuer, subject }: Pick<ProviderAccount, 'issuer' | 'subject'>): Promise<boolean> {
    return (await this.database.row(FIND_IDENTITY, { issuer, subject })) !== undefined;
  }

  of(user_id: number): Promise<ListedIdentity[]> {
    const select = { id: true, issuer: true, label: true, created_at: true, used_at: true } as const;
    return this.identities.find({ where: { user_id }, select, order: { id: 'ASC' }, take: MAX_IDENTITIES });
  }

  /** Whether the user has a password that signs them in. */
  async hasPassword(user_id: number): Promise<boolean> {
    if (this.settings.OIDC_ONLY) return false;
    return (await this.database.row(HAS_PASSWORD, { user_id })) !== undefined;
  }

  /** `session`: the token of the session in which the user confirmed the connection. */
  async connect(
    user_id: number,
    account: Omit<ProviderAccount, 'id_token'>,
    session: string,
  ): Promise<Connection> {
    try {
      return await this.database.transaction(
        async (db) => {
          await lockSession(db, user_id, session);
          if ((await db.countBy(Identity, { user_id })) >= MAX_IDENTITIES) return { problem: 'too many' };
          return { id: await insert(db, user_id, account) };
        },
        { concurrencyKey: `user ${user_id}` },
      );
    } catch (error) {
      if (violatedConstraint(error) === 'identities_issuer_subject_key') return { problem: 'taken' };
      throw error;
    }
  }

  /** Returns false if there is no such identity, or nothing else signs in the user. */
  disconnect(user_id: number, id: number): Promise<boolean> {
    return this.database.transaction(
      async (db) => {
        // Two concurrent requests must not remove the last two identities.
        await lockUser(db, user_id);
        const values = {
          user_id,
          identity_id: id,
          oidc_only: this.settings.OIDC_ONLY,
          issuers: this.provider.issuers,
        };
        return (await this.database.row(DISCONNECT, values, db)) !== undefined;
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  /** Creates an account for an email address that the provider verified, and that no account has verified. */
  async signUp(account: Omit<ProviderAccount, 'id_token'> & { verified_email: string }): Promise<SignUp> {
    const email = lowerAscii(account.verified_email);
    for (const username of usernamesFor(account.username)) {
      try {
        return await this.database.transaction(async (db) => {
          const { identifiers } = await db.insert(User, { username });
          const { id: user_id } = identifiers[0] as Pick<User, 'id'>;
          await db.insert(UserEmail, { user_id, email, verified: true, is_primary: true });
          return { id: await insert(db, user_id, account), user_id };
        });
      } catch (error) {
        const constraint = violatedConstraint(error);
        if (constraint === 'user_emails_verified_key') return { problem: 'address' };
        // A concurrent request of the same person connected the identity.
        if (constraint === 'identities_issuer_subject_key') return { problem: 'connected' };
        if (constraint !== 'users_username_key') throw error;
      }
    }
    throw new Error('no free username was found');
  }
}

async function insert(
  db: EntityManager,
  user_id: number,
  account: Omit<ProviderAccount, 'id_token'>,
): Promise<number> {
  const { issuer, subject, username, verified_email } = account;
  const label =
    [...(username ?? verified_email ?? '')].slice(0, MAX_IDENTITY_LABEL_CHARACTERS).join('') || null;
  const { identifiers } = await db.insert(Identity, {
    issuer,
    subject,
    user_id,
    label,
    used_at: () => 'now()',
  });
  return (identifiers[0] as Pick<Identity, 'id'>).id;
}

/**
 * Valid usernames similar to the name. The domain of an email address is omitted, because it would reveal
 * more than a name.
 */
function* usernamesFor(name = ''): Generator<string> {
  const valid = name
    .split('@')[0]!
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, MAX_NAME_CHARACTERS);
  const base = valid === '' || /^erased(-|$)/i.test(valid) ? 'player' : valid;
  yield base;
  for (let attempt = 0; attempt < NAME_ATTEMPTS; attempt++)
    yield `${base}-${Math.floor(Math.random() * 10 ** (3 + Math.floor(attempt / 4)))}`;
}
