import { Command } from 'commander';
import { registerAccountCommands } from '../accounts/accounts.command';
import { registerAuthCommands } from '../auth/auth.command';
import { registerCollectionCommands } from '../collections/collections.command';
import { runCommand } from './command-runner';
import { registerCompletion } from './completion';
import { serve } from './serve';
import { versionOfThis } from './version';
import { registerDatabaseCommands } from '../database/database.command';
import { registerPeopleCommands } from '../people/people.command';
import { registerSellingCommands } from '../selling/selling.command';
import { registerUserCommands } from '../users/users.command';
import { registerWebhookCommands } from '../webhooks/webhooks.command';
import { registerImportCommands } from '../importing/import.command';

/** The command `gamewharf`, with all that it can do. */
export const program = new Command('gamewharf')
  .description('Starts a Gamewharf store, and looks after it.')
  .version(versionOfThis(), '-v, --version', 'print the version');

program
  .command('start')
  .description('Start the service, with the embedded database where DATABASE_URL is not set. The default.')
  .action(serve);
registerDatabaseCommands(program);
registerAuthCommands(program, runCommand);
const users = registerAccountCommands(program, runCommand);
registerUserCommands(users, runCommand);
registerPeopleCommands(users, runCommand);
registerSellingCommands(program, runCommand);
registerWebhookCommands(program, runCommand);
registerCollectionCommands(program, runCommand);
registerImportCommands(program, runCommand);
registerCompletion(program);
