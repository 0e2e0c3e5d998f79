import { commandName } from '../platform/config/environment';
import { nextCommands } from '../dev/next-commands';
import { type Commands, parseCount, type OperatorCommand, subcommands } from './operator-command';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { prompt, readPassword } from './terminal';
import { requireAddress } from './email-address';
import { registerErase, registerExport } from './people.command';
import { printRequest } from './print-request';
import { type Columns, printRows, formatTime } from './print-table';
import { problemOfDisplayName } from '../users/display-name';
import { AccountsService } from '../users/accounts.service';
import { problemOfNewPassword } from '../users/new-password';
import { problemOfNewUsername } from '../users/username';
import { LinksService } from '../users/links/links.service';
import { ApiError } from '../platform/errors/api-error';
import { InvalidArgumentError } from 'commander';
import { Audit } from '../audit/audit';

interface CreateOptions {
  displayName?: string;
  developer?: boolean;
  email?: string;
}

export const commands: Commands = {
  users: subcommands({
    create: registerCreate,
    'set-password': registerSetPassword,
    link: registerLink,
    list: registerList,
    export: registerExport,
    erase: registerErase,
  }),
};

function registerCreate(command: OperatorCommand): void {
  command
    .description('Create an account. Set its password with `users set-password`.')
    .example('users create me --developer --email me@example.com')
    .argument('[NAME]', 'username')
    .option('--display-name <TEXT>', 'display name; default: the username')
    .option('--developer', 'mark the account as a developer')
    .option('--email <ADDRESS>', 'verified email address')
    .handler(async ({ app, signal }, nameArgument: string | undefined, options: CreateOptions) => {
      const name =
        nameArgument ?? (await prompt('Username:', new UsageError('The username is missing.'), signal));
      requireValid(name, options);
      const { displayName = null, developer = false, email } = options;
      const account = { username: name, display_name: displayName, developer, email };
      const id = await app.get(AccountsService).create(account);
      console.log(
        `Created user ${id} (${name}). To let them sign in, run \`${commandName()} users set-password ${name}\`.`,
      );
      await printRequest(app, { id, username: name }, '/profile');
    });
}

function registerSetPassword(command: OperatorCommand): void {
  command
    .argument('<NAME>', 'username')
    .description(
      'Set the password of a user, read from the terminal or standard input, and end all sessions of the user.',
    )
    .handler(async ({ app }, name: string) => {
      const { id } = await app.get(AccountsService).named(name);
      const password = await readPassword();
      const problem = problemOfNewPassword(password);
      if (problem !== undefined) throw new OperatorError(problem);
      await app.get(AccountsService).setPassword(id, password);
      app.get(Audit).record({ event: 'user.password_set', user_id: id });
      console.log(`The password of ${name} is set.`);
    });
}

function registerLink(command: OperatorCommand): void {
  command
    .argument('<NAME>', 'username')
    .description(
      'Print a link that sets the password of a user, or signs them in. It works once, for 24 hours. Send it only to this user.',
    )
    .option('--purpose <PURPOSE>', 'set_password or sign_in', parsePurpose, 'set_password')
    .completes('--purpose', ['set_password', 'sign_in'])
    .example('users link azure-bison', 'users link azure-bison --purpose sign_in')
    .handler(async ({ app }, name: string, { purpose }: { purpose: 'set_password' | 'sign_in' }) => {
      const { id } = await app.get(AccountsService).named(name);
      const { url, expires_at } = await app
        .get(LinksService)
        .create({ user_id: id, purpose }, {})
        .catch((error: unknown) => {
          throw error instanceof ApiError ? new OperatorError(`User ${name} was erased.`) : error;
        });
      console.log(`${url}\nIt expires at ${expires_at}.`);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description('List the newest accounts with their verified email addresses.')
    .option('--count <NUMBER>', 'number of accounts', parseCount, 50)
    .json()
    .handler(async ({ app }, { count, json }: { count: number; json?: boolean }) => {
      const rows = await app.get(AccountsService).newest(count);
      if (rows.length === 0 && !json) return console.log(`There are no accounts or games. ${nextCommands()}`);
      const columns: Columns<(typeof rows)[number]> = {
        ID: (row) => row.id,
        NAME: (row) => row.username,
        DEVELOPER: (row) => row.developer,
        CREATED: (row) => formatTime(row.created_at),
        'EMAIL ADDRESSES': (row) => row.addresses,
      };
      printRows(rows, columns, { json });
      if (!json) await printRequest(app, rows[0]!, '/profile');
    });
}

function parsePurpose(text: string): 'set_password' | 'sign_in' {
  if (text !== 'set_password' && text !== 'sign_in')
    throw new InvalidArgumentError('Use set_password or sign_in.');
  return text;
}

function requireValid(name: string, { displayName, email }: CreateOptions): void {
  const problem =
    problemOfNewUsername(name) ?? (displayName === undefined ? undefined : problemOfDisplayName(displayName));
  if (problem !== undefined) throw new UsageError(problem);
  if (email !== undefined) requireAddress(email);
}
