/* eslint-disable @typescript-eslint/no-require-imports -- the services behind a command take up to a second to load */
import { Command } from 'commander';
import { versionOfThis } from '../platform/config/version';
import { type CommandRunner, type Commands, OperatorCommand } from './operator-command';

/** By name: the description, and the file `<file>.command.ts`, which is loaded when the command runs. */
const COMMANDS: Readonly<Record<string, readonly [description: string, file: string]>> = {
  start: [
    'Start the service (default command). Uses the embedded database if DATABASE_URL is not set.',
    'start',
  ],
  migrate: [
    'Migrate the database to the schema of this version. Safe while replicas of the previous version run.',
    'database',
  ],
  backup: [
    'Write a consistent backup of all rows and secrets to a file, without the game files in FILES_DIR. The service can keep running.',
    'database',
  ],
  restore: [
    'Restore a backup of this or an earlier version into an empty store. Copy the game files separately.',
    'database',
  ],
  keys: ['Manage API keys.', 'auth'],
  tokens: ['Create and revoke the JWTs of launched games.', 'auth'],
  'signing-keys': ['Manage the keys that sign JWTs.', 'auth'],
  'operator-tokens': [
    'Manage the tokens that your own programs use for the routes under /operator/.',
    'operator-tokens',
  ],
  audit: ['Read the audit log.', 'auth'],
  scopes: ['List all scopes and the scope that each route requires.', 'auth'],
  users: ['Manage user accounts.', 'users'],
  games: ['Create, price and list games.', 'games'],
  sell: ['Sell a game and print its download key.', 'sales'],
  refund: ['Refund a purchase and revoke its download keys.', 'sales'],
  give: ['Create a download key without a purchase and print it.', 'sales'],
  purchases: ['Read the purchases of a game.', 'sales'],
  webhooks: ['Manage webhooks for sales and refunds.', 'webhooks'],
  collections: ['Manage collections of games.', 'collections'],
  import: [
    'Import records from a file or standard input. If one record is invalid, nothing is imported.',
    'import',
  ],
  delete: ['Delete a record and its dependents. Fails if purchases or keys depend on it.', 'import'],
  reset: ['Reset the demo store to its initial state.', 'import'],
  demo: [
    'Generate the records of a demo store for import. The same options generate the same records, except for the times of recent sales.',
    'import',
  ],
  files: ['Manage the files that players download.', 'files'],
  completion: ['Print a shell completion script for commands and options.', 'completion'],
};

/** Adds the commands. Only those among `words` can run; the others are listed in the help. */
export function addCommands(program: Command, run: CommandRunner, words?: readonly string[]): Command {
  for (const [name, [description, file]] of Object.entries(COMMANDS)) {
    const command = new OperatorCommand(name, run).copyInheritedSettings(program).description(description);
    program.addCommand(command);
    if (words && !words.includes(name)) continue;
    const { commands } = require(`./${file}.command`) as { commands: Commands };
    commands[name]!(command);
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
