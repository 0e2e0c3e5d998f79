import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Not, type Repository } from 'typeorm';
import { sha256 } from '../auth/accounts/encryption';
import { Session } from '../auth/accounts/session.entity';
import { AccountLink } from './links/account-link.entity';
import { User } from '../auth/accounts/user.entity';
import { UserEmail } from '../auth/accounts/user-email.entity';
import { hashPassword, PasswordCost } from '../auth/sign-in/password-hash';
import { Database } from '../platform/database/database';
import { violatedConstraint } from '../platform/database/sqlstates';
import { ignoringCase } from '../platform/database/ignoring-case';
import { longRead } from '../platform/database/statement';
import { OperatorError } from '../platform/errors/operator-error';
import { lowerAscii } from '../platform/formats/lower-ascii';

interface ListedAccount extends Pick<User, 'id' | 'username' | 'developer' | 'created_at'> {
  addresses: string[];
}

interface NewAccount {
  username: string;
  display_name: string | null;
  developer: boolean;
  /** Stored as a verified email address. */
  email?: string;
}

const NEWEST_ACCOUNTS = longRead<ListedAccount>(
  'newest_accounts',
  `SELECT id, username, developer, created_at, ARRAY(
     SELECT email FROM user_emails WHERE user_id = u.id AND verified ORDER BY email LIMIT 10) AS addresses
   FROM users u ORDER BY id DESC LIMIT $count`,
);

/** All accounts, for the operator of the store. */
@Injectable()
export class AccountsService {
  constructor(
    private readonly database: Database,
    private readonly passwordCost: PasswordCost,
    @InjectRepository(User) private readonly users: Repository<User>,
  ) {}

  async named(username: string): Promise<User> {
    const user = await this.users.findOneBy({ username: ignoringCase(username) });
    if (!user) throw new OperatorError(`User ${username} doesn't exist.`);
    return user;
  }

  isTaken(username: string): Promise<boolean> {
    return this.users.existsBy({ username: ignoringCase(username) });
  }

  newest(count: number): Promise<ListedAccount[]> {
    return this.database.rows(NEWEST_ACCOUNTS, { count });
  }

  /** Returns the ID of the new account. */
  async create({ email, ...account }: NewAccount): Promise<number> {
    try {
      return await this.database.transaction(async (db) => {
        const { identifiers } = await db.insert(User, account);
        const { id } = identifiers[0] as Pick<User, 'id'>;
        if (email !== undefined)
          await db.insert(UserEmail, {
            user_id: id,
            email: lowerAscii(email),
            verified: true,
            is_primary: true,
          });
        return id;
      });
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'users_username_key')
        throw new OperatorError(`The username ${account.username} is already taken.`);
      if (constraint === 'user_emails_verified_key')
        throw new OperatorError(`Another user has verified ${email}.`);
      throw error;
    }
  }

  /** Also ends all sessions and links of the user. */
  async setPassword(id: number, password: string): Promise<void> {
    const password_hash = await hashPassword(password, this.passwordCost);
    await this.database.transaction((db) => this.replacePassword(db, id, password_hash));
  }

  /** `session`: the token of the session that stays valid. */
  async replacePassword(
    db: EntityManager,
    id: number,
    password_hash: string,
    session?: string,
  ): Promise<void> {
    await db.update(User, { id }, { password_hash });
    await db.delete(Session, {
      user_id: id,
      ...(session !== undefined && { token_hash: Not(sha256(session)) }),
    });
    await db.delete(AccountLink, { user_id: id });
  }
}
