#!/usr/bin/env node
import 'reflect-metadata';
import { Command } from 'commander';
import { registerAccountCommands } from './accounts/accounts.command';
import { registerAuthCommands } from './auth/auth.command';
import { registerCollectionCommands } from './collections/collections.command';
import { runCommand } from './process/command-runner';
import { registerCompletion } from './process/completion';
import { serve } from './process/serve';
import { versionOfThis } from './process/version';
import { registerDatabaseCommands } from './database/database.command';
import { registerPeopleCommands } from './people/people.command';
import { registerSellingCommands } from './selling/selling.command';
import { registerUserCommands } from './users/users.command';
import { explain } from './config/environment';
import { registerImportCommands } from './importing/import.command';

const program = new Command('gamewharf')
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
registerCollectionCommands(program, runCommand);
registerImportCommands(program, runCommand);
registerCompletion(program);

// Not commander's default command, which would take a mistyped one for its argument.
const words = process.argv.slice(2);
program.parseAsync(words.length > 0 ? words : ['start'], { from: 'user' }).catch((error: unknown) => {
  console.error(explain(error));
  process.exitCode = 1;
});
