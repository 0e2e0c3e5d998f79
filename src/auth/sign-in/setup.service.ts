import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Request } from 'express';
import { deriveKey, sha256 } from '../accounts/encryption';
import { User } from '../accounts/user.entity';
import { UserEmail } from '../accounts/user-email.entity';
import { listPeppers } from '../keys/api-key';
import { AttemptsService, networkSubject, setupSubject } from './attempts.service';
import { hashPassword, PasswordCost } from './password-hash';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { read, statement } from '../../platform/database/statement';
import { lowerAscii } from '../../platform/formats/lower-ascii';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';

// Letters and digits that look similar are omitted.
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const LENGTH = 12;

/** The last ID that the database assigned, or null before the first one. Imported accounts may have other IDs. */
const LAST_ACCOUNT = read<{ last: number | null }>(
  'last_account',
  `SELECT pg_sequence_last_value(pg_get_serial_sequence('users', 'id')::regclass) AS last`,
);

const LOCK_USERS = statement('setup_lock_users', 'LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE');
const WAIT_FOR_NEW_USERS = statement('setup_wait_for_users', 'LOCK TABLE users IN SHARE MODE');

interface FirstAccount {
  username: string;
  email: string;
  password: string;
}

/** The first account of an empty store, for an operator without a shell. */
@Injectable()
export class SetupService {
  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly manager: EntityManager,
    private readonly attempts: AttemptsService,
    private readonly limits: RateLimitsService,
    private readonly cost: PasswordCost,
  ) {}

  /** Whether the store waits for its first account. */
  async isOpen(): Promise<boolean> {
    const { DEMO_DATA, OIDC_ONLY, TRUSTED_IDENTITY_HEADER } = this.settings;
    if (DEMO_DATA || OIDC_ONLY || TRUSTED_IDENTITY_HEADER !== undefined) return false;
    return !(await this.manager.existsBy(User, {}));
  }

  /**
   * Derived from the pepper, so that all replicas have the same code, also after a restart; and from the last assigned
   * ID of an account, so that a used code isn't valid again after all accounts were deleted.
   */
  async code(): Promise<string> {
    const { last } = (await this.database.row(LAST_ACCOUNT, {}))!;
    const key = deriveKey(listPeppers(this.settings)[0]!, 'gamewharf setup code');
    const bytes = createHmac('sha256', key).update(String(last)).digest();
    const characters = [...bytes.subarray(0, LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]);
    return characters.join('').replace(/(.{4})(?=.)/g, '$1-');
  }

  /** Returns the seconds to wait, or whether the code is right; wrong ones are limited like passwords. */
  async check(code: string, req: Request): Promise<{ isRight: boolean; seconds?: number }> {
    const subjects = [setupSubject, networkSubject(req.inFlight.client.network)] as const;
    const seconds = await this.attempts.reserve([...subjects]);
    if (seconds > 0) return { isRight: false, seconds };
    const [own, entered] = [hashSetupCode(await this.code()), hashSetupCode(code)];
    const isRight = timingSafeEqual(own, entered);
    if (isRight) await this.attempts.succeeded(...subjects);
    else void this.limits.failed('sign-in', req);
    return { isRight };
  }

  /** Waits for a request that is creating the account. The code changes before its transaction ends. */
  async waitForCreation(): Promise<void> {
    await this.database.transaction((db) => this.database.rows(WAIT_FOR_NEW_USERS, {}, db));
  }

  /** Returns the ID of the account, or undefined if another request was first. */
  async create({ username, email, password }: FirstAccount): Promise<number | undefined> {
    const password_hash = await hashPassword(password, this.cost);
    return this.database.transaction(async (db) => {
      // The lock lets only the first of several requests with the code create the account.
      await this.database.rows(LOCK_USERS, {}, db);
      if (await db.exists(User)) return undefined;
      const { identifiers } = await db.insert(User, { username, developer: true, password_hash });
      const { id } = identifiers[0] as Pick<User, 'id'>;
      await db.insert(UserEmail, { user_id: id, email: lowerAscii(email), verified: true, is_primary: true });
      return id;
    });
  }
}

/** The hash of a code as a person types it: hyphens, spaces and case don't matter. */
const hashSetupCode = (code: string) => sha256(code.toUpperCase().replace(/[\s-]/g, ''));
