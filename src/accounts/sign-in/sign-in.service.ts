import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';
import { AttemptsService, guessAtAccount, guessFrom } from './attempts.service';
import { PasswordQueue } from './password-queue';

export type SignIn = { user_id: number } | { refused: 'wrong' } | { refused: 'wait'; seconds: number };

interface Account {
  /** What was typed, as the database folds names: JavaScript folds some letters otherwise. */
  name: string;
  /** Null: nobody has the name. */
  id: number | null;
  password_hash: string | null;
}

// A user name has no @, and a verified address belongs to one account.
const ACCOUNT = statement<Account>(
  'account_to_sign_in',
  `SELECT typed.name, found.id, found.password_hash
   FROM (SELECT lower($1) AS name) typed LEFT JOIN LATERAL (
     SELECT id, password_hash FROM users WHERE lower(username) = typed.name
     UNION ALL
     SELECT u.id, u.password_hash FROM user_emails e JOIN users u ON u.id = e.user_id
     WHERE e.email = typed.name AND e.verified) found ON true`,
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
    const account = (await this.database.row(ACCOUNT, [name]))!;
    const guesses = [guessAtAccount(account), guessFrom(network)] as const;
    const seconds = await this.attempts.reserve([...guesses]);
    if (seconds > 0) return { refused: 'wait', seconds };
    const { id, password_hash } = account;
    const matches = await this.passwords.matches(password_hash, password).catch(async (error: unknown) => {
      await this.attempts.withdrawn(...guesses);
      throw error;
    });
    if (!matches || id === null) return { refused: 'wrong' };
    await this.attempts.succeeded(...guesses);
    return { user_id: id };
  }
}
