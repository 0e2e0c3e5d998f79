import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Request } from 'express';
import type { Repository } from 'typeorm';
import { User } from '../accounts/user.entity';
import { Audit } from '../../audit/audit';
import { Database } from '../../platform/database/database';
import { ignoringCase } from '../../platform/database/ignoring-case';
import { read } from '../../platform/database/statement';
import type { LimitedClient } from '../../platform/limits/concurrency-limit';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { AttemptsService, accountSubject, networkSubject } from './attempts.service';
import { PasswordQueue } from './password-queue';

/** If `seconds` is set, the client must wait, and the password wasn't checked. */
type SignIn = { user_id: number; password_hash: string } | { user_id: undefined; seconds?: number };

interface Account {
  /** The entered name, with ASCII letters in lowercase. */
  name: string;
  /** Null if the account doesn't exist. */
  id: number | null;
  password_hash: string | null;
}

// Raw SQL for the UNION. It returns one row at most: a username has no @, and a verified email address belongs to one
// account.
const ACCOUNT = read<Account>(
  'account_to_sign_in',
  `SELECT typed.name, found.id, found.password_hash
   FROM (SELECT lower_ascii($name) AS name) typed LEFT JOIN LATERAL (
     SELECT id, password_hash FROM users WHERE lower_ascii(username) = typed.name
     UNION ALL
     SELECT u.id, u.password_hash FROM user_emails e JOIN users u ON u.id = e.user_id
     WHERE e.email = typed.name AND e.verified) found ON true`,
);

@Injectable()
export class SignInService {
  private readonly log = new Logger(SignInService.name);

  constructor(
    private readonly database: Database,
    @InjectRepository(User) private readonly users: Repository<User>,
    private readonly attempts: AttemptsService,
    private readonly passwords: PasswordQueue,
    private readonly limits: RateLimitsService,
    private readonly audit: Audit,
  ) {}

  /** An unknown name and a wrong password get the same response after the same time. */
  async signIn(name: string, password: string, req: Request): Promise<SignIn> {
    const { client } = req.inFlight;
    const account = (await this.database.row(ACCOUNT, { name }))!;
    const { id, password_hash } = account;
    const failed = (reason: 'wrong' | 'wait') =>
      this.audit.record({
        event: 'user.sign_in_failed',
        request_id: req.id,
        user_id: id ?? undefined,
        reason,
        network: client.networkPrefix('site') || undefined,
      });
    const subjects = [accountSubject(account), networkSubject(client.network)] as const;
    const seconds = await this.attempts.reserve([...subjects]);
    if (seconds > 0) {
      failed('wait');
      return { user_id: undefined, seconds };
    }
    const matches = await this.passwords
      .matches(client, password_hash, password)
      .catch(async (error: unknown) => {
        await this.attempts.cancel(...subjects);
        throw error;
      });
    if (!matches || id === null) {
      failed('wrong');
      void this.limits.failed('sign-in', req);
      return { user_id: undefined };
    }
    await this.attempts.succeeded(...subjects);
    const stored = { id, password_hash: password_hash! };
    const renewed = await this.renew(client, stored, password).catch(({ message }: Error) => {
      this.log.warn(`The password hash of user ${id} is renewed at the next sign-in: ${message}`);
      return undefined;
    });
    return { user_id: id, password_hash: renewed ?? stored.password_hash };
  }

  /** The user that a trusted proxy names. */
  async findUserId(username: string): Promise<number | undefined> {
    const user = await this.users.findOne({
      select: { id: true },
      where: { username: ignoringCase(username) },
    });
    return user?.id;
  }

  /** Replaces an imported hash, and returns the new one. A concurrent erasure or new password takes precedence. */
  private async renew(
    client: LimitedClient,
    { id, password_hash }: { id: number; password_hash: string },
    password: string,
  ): Promise<string | undefined> {
    const renewed = await this.passwords.renewed(client, password_hash, password);
    if (!renewed) return undefined;
    const { affected } = await this.users.update({ id, password_hash }, { password_hash: renewed });
    if (affected === 1) return renewed;
    // A concurrent sign-in may have replaced the hash.
    const user = await this.users.findOne({ select: { id: true, password_hash: true }, where: { id } });
    const current = user?.password_hash ?? undefined;
    return (await this.passwords.matches(client, current, password)) ? current : undefined;
  }
}
