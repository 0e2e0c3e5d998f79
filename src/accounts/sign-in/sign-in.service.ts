import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { AttemptsService, guessAtAccount, guessFrom } from './attempts.service';
import { PasswordQueue } from './password-queue';

export type SignIn = { user_id: number } | { refused: 'wrong' } | { refused: 'wait'; seconds: number };

// A user name has no @, and a verified address belongs to one account.
const ACCOUNT = statement<{ id: number; password_hash: string | null }>(
  'account_to_sign_in',
  `SELECT id, password_hash FROM users WHERE lower(username) = lower($1)
   UNION ALL
   SELECT u.id, u.password_hash FROM user_emails e JOIN users u ON u.id = e.user_id WHERE e.email = lower($1) AND e.verified`,
);

@Injectable()
export class SignInService {
  constructor(
    private readonly database: Database,
    private readonly attempts: AttemptsService,
    private readonly passwords: PasswordQueue,
  ) {}

  /** Says the same, after the same time, of a name that nobody has and of a password that is wrong. */
  async signIn(name: string, password: string, network: string): Promise<SignIn> {
    const account = guessAtAccount(name);
    const address = guessFrom(network);
    const seconds = await this.attempts.reserve([account, address]);
    if (seconds > 0) return { refused: 'wait', seconds };
    const user_id = await this.userOf(name, password).catch(async (error: unknown) => {
      await this.attempts.withdrawn(account, address);
      throw error;
    });
    if (user_id === undefined) return { refused: 'wrong' };
    await this.attempts.succeeded(account, address);
    return { user_id };
  }

  private async userOf(name: string, password: string): Promise<number | undefined> {
    const found = await this.database.row(ACCOUNT, [name]);
    return (await this.passwords.matches(found?.password_hash, password)) ? found!.id : undefined;
  }
}
