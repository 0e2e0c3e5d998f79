import { Command } from 'commander';
import { registerAccountCommands } from './accounts.command';
import { registerAuthCommands } from './auth.command';
import { registerCollectionCommands } from './collections.command';
import { runCommand } from './command-runner';
import { registerCompletion } from './completion';
import { serve } from '../serve';
import { versionOfThis } from '../platform/config/version';
import { registerDatabaseCommands } from './database.command';
import { registerGameCommands } from './games.command';
import { registerPeopleCommands } from './people.command';
import { registerSellingCommands } from './sales.command';
import { registerUserCommands } from './users.command';
import { registerWebhookCommands } from './webhooks.command';
import { registerFileCommands } from './files.command';
import { registerImportCommands } from './import.command';

/** The `gamewharf` command with its subcommands. */
export const program = new Command('gamewharf')
  .description('Run and manage a Gamewharf store.')
  .version(versionOfThis(), '-v, --version', 'print the version');

program
  .command('start')
  .description('Start the service (default command). Uses the embedded database if DATABASE_URL is not set.')
  .action(serve);
registerDatabaseCommands(program);
registerAuthCommands(program, runCommand);
const users = registerAccountCommands(program, runCommand);
registerUserCommands(users, runCommand);
registerPeopleCommands(users, runCommand);
registerGameCommands(program, runCommand);
registerSellingCommands(program, runCommand);
registerWebhookCommands(program, runCommand);
registerCollectionCommands(program, runCommand);
registerImportCommands(program, runCommand);
registerFileCommands(program, runCommand);
registerCompletion(program);
