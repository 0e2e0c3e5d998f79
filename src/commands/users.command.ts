import { EntityManager, QueryFailedError } from 'typeorm';
import { commandName } from '../platform/config/environment';
import { nextCommands } from '../dev/next-commands';
import { type Commands, parseCount, type OperatorCommand } from './operator-command';
import { lowerAscii } from '../platform/formats/lower-ascii';
import { OperatorError } from '../platform/errors/operator-error';
import { ask, readPassword } from './terminal';
import { requireAddress, userNamed } from './user-named';
import { Database } from '../platform/database/database';
import { registerPeopleCommands } from './people.command';
import { printRequest } from './print-request';
import { printRows, formatTime } from './print-table';
import { Audit } from '../audit/audit';
import { hashPassword, PasswordCost } from '../auth/sign-in/password-hash';
import { SessionsService } from '../auth/sign-in/sessions.service';
import { UserEmail } from '../auth/accounts/user-email.entity';
import { User } from '../auth/accounts/user.entity';

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1000;

interface CreateOptions {
  displayName?: string;
  developer?: boolean;
  email?: string;
}

interface ListedUser extends Pick<User, 'id' | 'username' | 'developer' | 'created_at'> {
  addresses: string[];
}

export const commands: Commands = {
  users: (users) => {
    registerUserCommands(users);
    registerPeopleCommands(users);
  },
};

function registerUserCommands(users: OperatorCommand): void {
  users
    .command('create')
    .description('Create an account. Set its password with `users set-password`.')
    .argument('[name]', 'username')
    .option('--display-name <TEXT>', 'display name; default: the username')
    .option('--developer', 'mark the account as a developer')
    .option('--email <ADDRESS>', 'verified email address')
    .handler(async ({ app, signal }, given: string | undefined, options: CreateOptions) => {
      const name = given ?? (await ask('Username:', 'The username is missing.', signal));
      requireValid(name, options);
      const id = await app
        .get(Database)
        .transaction((db) => create(db, name, options))
        .catch((error: unknown) => {
          throw taken(error, name, options) ?? error;
        });
      console.log(
        `Created user ${id} (${name}). To let them sign in, run \`${commandName()} users set-password ${name}\`.`,
      );
      await printRequest(app, { id, username: name }, '/profile');
    });

  users
    .command('set-password')
    .argument('<name>', 'username')
    .description(
      'Set the password of a user, read from the terminal or standard input, and end all sessions of the user.',
    )
    .handler(async ({ app }, name: string) => {
      const { id } = await userNamed(app, name);
      const password = await readPassword();
      if ([...password].length < MIN_PASSWORD)
        throw new OperatorError(`The password must have at least ${MIN_PASSWORD} characters.`);
      if (password.length > MAX_PASSWORD)
        throw new OperatorError(`The password must have at most ${MAX_PASSWORD} characters.`);
      const password_hash = await hashPassword(password, app.get(PasswordCost));
      await app.get(EntityManager).update(User, { id }, { password_hash });
      await app.get(SessionsService).endAllOf(id);
      app.get(Audit).record({ event: 'user.password_set', user_id: id });
      console.log(`The password of ${name} is set.`);
    });

  users
    .command('list')
    .description('List the newest accounts with their verified email addresses.')
    .option('--count <number>', 'number of accounts', parseCount, 50)
    .handler(async ({ app }, { count }: { count: number }) => {
      const rows = await app.get(EntityManager).query<ListedUser[]>(
        `SELECT id, username, developer, created_at, ARRAY(
             SELECT email FROM user_emails WHERE user_id = u.id AND verified ORDER BY email LIMIT 10) AS addresses
           FROM users u ORDER BY id DESC LIMIT $1`,
        [count],
      );
      if (rows.length === 0) return console.log(`There are no accounts or games. ${nextCommands()}`);
      printRows(rows, {
        ID: (row) => row.id,
        NAME: (row) => row.username,
        DEVELOPER: (row) => row.developer,
        CREATED: (row) => formatTime(row.created_at),
        'EMAIL ADDRESSES': (row) => row.addresses.join(' ') || null,
      });
      await printRequest(app, rows[0]!, '/profile');
    });
}

function requireValid(name: string, { displayName, email }: CreateOptions): void {
  if (!/^[A-Za-z0-9_-]{1,63}$/.test(name))
    throw new OperatorError('A username must have 1 to 63 letters, digits, _ or -.');
  if (/^erased-\d+(-|$)/i.test(name))
    throw new OperatorError('Names such as erased-7 are reserved for erased users.');
  if (displayName === '' || [...(displayName ?? '')].length > 200)
    throw new OperatorError('A display name must have 1 to 200 characters.');
  if (email !== undefined) requireAddress(email);
}

async function create(
  db: EntityManager,
  username: string,
  { displayName, developer = false, email }: CreateOptions,
): Promise<number> {
  const made = await db.insert(User, { username, display_name: displayName ?? null, developer });
  const { id } = made.identifiers[0] as Pick<User, 'id'>;
  if (email !== undefined)
    await db.insert(UserEmail, { user_id: id, email: lowerAscii(email), verified: true });
  return id;
}

function taken(error: unknown, name: string, { email }: CreateOptions): OperatorError | undefined {
  if (!(error instanceof QueryFailedError)) return undefined;
  const { constraint } = error.driverError as { constraint?: string };
  if (constraint === 'users_username_key') return new OperatorError(`The username ${name} is already taken.`);
  if (constraint === 'user_emails_verified_key')
    return new OperatorError(`Another user has verified ${email}.`);
  return undefined;
}
