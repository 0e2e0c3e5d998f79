import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Database } from '../../platform/database/database';
import { ignoringCase } from '../../platform/database/ignoring-case';
import { read } from '../../platform/database/statement';
import { User } from '../../auth/accounts/user.entity';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import { type PersonKeys, createScan } from './table-scan';

/** The person whose data is exported or erased. */
export interface Person extends PersonKeys {
  username: string | null;
  display_name: string | null;
}

interface Account {
  user_id: number;
  username: string;
  display_name: string | null;
  verified: string[];
  unverified: string[];
}

const addresses = (condition: string) =>
  `ARRAY(SELECT e.email FROM user_emails e WHERE e.user_id = u.id AND ${condition} ORDER BY e.email)`;

const PERSON_ACCOUNT = read<Account>(
  'person_account',
  `SELECT u.id AS user_id, u.username, u.display_name,
     ${addresses('e.verified')} AS verified, ${addresses('NOT e.verified')} AS unverified
   FROM users u WHERE u.id = $user_id`,
);

const BY_ADDRESS = read<{ email: string; user_id: number | null }>(
  'person_by_address',
  `SELECT typed.email, e.user_id FROM (SELECT lower_ascii($address) AS email) typed
   LEFT JOIN user_emails e ON e.email = typed.email AND e.verified`,
);

/** Entries of the person's email addresses in other accounts. */
export const CLAIMS = createScan<{ user_id: number; email: string }>(
  'user_emails',
  { user_id: 'bigint', email: 'text' },
  't.email = ANY (person.addresses) AND t.user_id IS DISTINCT FROM person.user_id',
);

@Injectable()
export class People {
  constructor(
    private readonly database: Database,
    @InjectRepository(User) private readonly users: Repository<User>,
  ) {}

  /** Finds the person for an operator. An unverified email address is theirs if no other account has entered it. */
  async withId(user_id: number): Promise<Person | undefined> {
    const account = await this.database.row(PERSON_ACCOUNT, { user_id });
    if (!account) return undefined;
    const { username, display_name, verified, unverified } = account;
    const shared = new Set<string>();
    if (unverified.length > 0)
      for await (const claims of CLAIMS.rows(this.database, { user_id: null, addresses: unverified }))
        for (const claim of claims) if (claim.user_id !== user_id) shared.add(claim.email);
    return {
      user_id,
      username,
      display_name,
      addresses: [...verified, ...unverified.filter((email) => !shared.has(email))],
    };
  }

  /** Finds the person for their own request: anyone can enter any email address, so only verified ones count. */
  async verified(user_id: number): Promise<Person> {
    const { verified, username, display_name } = (await this.database.row(PERSON_ACCOUNT, { user_id }))!;
    return { user_id, username, display_name, addresses: verified };
  }

  async findByUsername(name: string): Promise<Person | undefined> {
    const user = await this.users.findOneBy({ username: ignoringCase(name) });
    return user ? this.withId(user.id) : undefined;
  }

  /** The account that verified the email address, otherwise the person with that email address. */
  async findByEmail(address: string): Promise<Person> {
    const { email, user_id } = (await this.database.row(BY_ADDRESS, { address }))!;
    const account = user_id === null ? undefined : await this.withId(user_id);
    if (account) return account;
    const addresses = email === ERASED_ADDRESS ? [] : [email];
    return { user_id: null, username: null, display_name: null, addresses };
  }
}
