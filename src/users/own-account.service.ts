import { Injectable } from '@nestjs/common';
import { lockUser } from '../auth/accounts/lock-user';
import { User } from '../auth/accounts/user.entity';
import { UserEmail } from '../auth/accounts/user-email.entity';
import { lockSession } from '../auth/accounts/lock-session';
import { Database } from '../platform/database/database';
import { violatedConstraint } from '../platform/database/sqlstates';
import { longRead } from '../platform/database/statement';
import { lowerAscii } from '../platform/formats/lower-ascii';
import { AccountsService } from './accounts.service';
import { LinkRequests } from './links/link-requests.service';

export const MAX_EMAIL_ADDRESSES = 20;

export type OwnAddress = Pick<UserEmail, 'email' | 'verified' | 'is_primary'>;

export interface OwnAccount extends Pick<User, 'username' | 'display_name'> {
  has_password: boolean;
  addresses: OwnAddress[];
}

const OWN_ACCOUNT = longRead<OwnAccount>(
  'own_account',
  `SELECT u.username, u.display_name, u.password_hash IS NOT NULL AS has_password,
     (SELECT coalesce(json_agg(e), '[]') FROM (
        SELECT email, verified, is_primary FROM user_emails WHERE user_id = u.id
        ORDER BY NOT is_primary, NOT verified, email LIMIT 100) e) AS addresses
   FROM users u WHERE u.id = $user_id`,
  'user $user_id',
);

/** Changes that users make to their own accounts. */
@Injectable()
export class OwnAccountService {
  constructor(
    private readonly database: Database,
    private readonly accounts: AccountsService,
    private readonly requests: LinkRequests,
  ) {}

  async find(user_id: number): Promise<OwnAccount> {
    return (await this.database.row(OWN_ACCOUNT, { user_id }))!;
  }

  /** Returns false if another account has the username. */
  async rename(user_id: number, names: Pick<User, 'username' | 'display_name'>): Promise<boolean> {
    try {
      await this.database.transaction((db) => db.update(User, { id: user_id }, names), {
        concurrencyKey: `user ${user_id}`,
      });
      return true;
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'users_username_key') return false;
      throw error;
    }
  }

  /** Ends other sessions and all links. `session`: the token of the current one. */
  async changePassword(user_id: number, password_hash: string, session: string): Promise<void> {
    await this.database.transaction(
      async (db) => {
        await lockSession(db, user_id, session);
        await this.accounts.replacePassword(db, user_id, password_hash, session);
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  /**
   * Requests a link that verifies the email address. If another account has verified it, no link is
   * requested, and the user doesn't see a difference. Returns false if the account has too many email
   * addresses.
   */
  async addAddress(user_id: number, address: string): Promise<boolean> {
    const email = lowerAscii(address);
    const isAdded = await this.database.transaction(
      async (db) => {
        await lockUser(db, user_id);
        if (await db.existsBy(UserEmail, { user_id, email })) return true;
        if ((await db.countBy(UserEmail, { user_id })) >= MAX_EMAIL_ADDRESSES) return false;
        await db.insert(UserEmail, { user_id, email });
        return true;
      },
      { concurrencyKey: `user ${user_id}` },
    );
    if (isAdded) this.requests.verification(user_id, email);
    return isAdded;
  }

  /** Returns false if the user doesn't have the email address. */
  async removeAddress(user_id: number, email: string): Promise<boolean> {
    return this.database.transaction(
      async (db) => {
        await lockUser(db, user_id);
        const { affected } = await db.delete(UserEmail, { user_id, email });
        return affected === 1;
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  /** Returns false if the user has not verified the email address. */
  async makePrimary(user_id: number, email: string): Promise<boolean> {
    return this.database.transaction(
      async (db) => {
        await lockUser(db, user_id);
        if (!(await db.existsBy(UserEmail, { user_id, email, verified: true }))) return false;
        await db.update(UserEmail, { user_id, is_primary: true }, { is_primary: false });
        await db.update(UserEmail, { user_id, email }, { is_primary: true });
        return true;
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }
}
