/* eslint-disable @typescript-eslint/no-require-imports -- the services behind a command take up to a second to load */
import { Command } from 'commander';
import { versionOfThis } from '../platform/config/version';
import { registerCompletion } from './completion';
import type { CommandRunner, Commands } from './operator-command';

type Load = () => Commands;

const auth: Load = () => (require('./auth.command') as typeof import('./auth.command')).commands;
const collections: Load = () =>
  (require('./collections.command') as typeof import('./collections.command')).commands;
const database: Load = () => (require('./database.command') as typeof import('./database.command')).commands;
const files: Load = () => (require('./files.command') as typeof import('./files.command')).commands;
const games: Load = () => (require('./games.command') as typeof import('./games.command')).commands;
const imports: Load = () => (require('./import.command') as typeof import('./import.command')).commands;
const operatorTokens: Load = () =>
  (require('./operator-tokens.command') as typeof import('./operator-tokens.command')).commands;
const selling: Load = () => (require('./sales.command') as typeof import('./sales.command')).commands;
const users: Load = () => (require('./users.command') as typeof import('./users.command')).commands;
const webhooks: Load = () => (require('./webhooks.command') as typeof import('./webhooks.command')).commands;

const own: Load = () => ({
  start: (start) => start.action(() => (require('../serve') as typeof import('../serve')).serve()),
  completion: (completion) => registerCompletion(completion, gamewharf),
});

const COMMANDS: Readonly<Record<string, readonly [description: string, load: Load]>> = {
  start: ['Start the service (default command). Uses the embedded database if DATABASE_URL is not set.', own],
  migrate: [
    'Migrate the database to the schema of this version. Safe while replicas of the previous version run.',
    database,
  ],
  backup: ['Write a consistent backup of the whole store to a file. The service can keep running.', database],
  restore: ['Restore a backup of this or an earlier version into an empty store.', database],
  keys: ['Manage API keys.', auth],
  tokens: ['Create and revoke JWTs, as a launched game receives them.', auth],
  'signing-keys': ['Manage the keys that sign JWTs.', auth],
  'operator-tokens': [
    'Manage the tokens that your own programs use for the routes under /operator/.',
    operatorTokens,
  ],
  audit: ['Read the audit log.', auth],
  scopes: ['List all scopes and the scope that each route requires.', auth],
  users: ['Manage user accounts.', users],
  games: ['Create and list games.', games],
  sell: ['Sell a game and print its download key.', selling],
  refund: ['Refund a purchase and revoke its download keys.', selling],
  give: ['Create a download key without a purchase and print it.', selling],
  purchases: ['Read the purchases of a game.', selling],
  sales: ['Maintain the totals of the Sales page.', selling],
  webhooks: ['Manage webhooks for sales and refunds.', webhooks],
  collections: ['Manage collections of games.', collections],
  import: [
    'Import records from a file or standard input. If one record is invalid, nothing is imported.',
    imports,
  ],
  delete: ['Delete a record and its dependents. Fails if purchases or keys depend on it.', imports],
  reset: ['Reset the demo store to its initial state.', imports],
  demo: ['Write the records of a demo store to import. The same options produce the same records.', imports],
  files: ['Manage the files that players download.', files],
  completion: ['Print a shell completion script for commands and options.', own],
};

/** Adds the commands. Only those among `words` can run; the others are listed in the help. */
export function addCommands(program: Command, run: CommandRunner, words?: readonly string[]): Command {
  for (const [name, [description, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(description);
    if (!words || words.includes(name)) load()[name]!(command, run);
  }
  return program;
}

/** The `gamewharf` command, with the subcommands that these words need; by default all. */
export const gamewharf = (words?: readonly string[]): Command =>
  addCommands(
    new Command('gamewharf')
      .description('Run and manage a Gamewharf store.')
      .version(versionOfThis(), '-v, --version', 'print the version'),
    (...work) => (require('./command-runner') as typeof import('./command-runner')).runCommand(...work),
    words,
  );
