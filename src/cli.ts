#!/usr/bin/env node
import 'reflect-metadata';
import { Command } from 'commander';
import { registerAccountCommands } from './accounts/accounts.command';
import { registerAuthCommands } from './auth/auth.command';
import { registerCollectionCommands } from './collections/collections.command';
import { runCommand } from './process/command-runner';
import { registerDatabaseCommands } from './database/database.command';
import { explain } from './config/environment';
import { registerImportCommands } from './importing/import.command';

const program = new Command('gamewharf').description('Looks after a Gamewharf store.');

registerDatabaseCommands(program);
registerAuthCommands(program, runCommand);
registerAccountCommands(program, runCommand);
registerCollectionCommands(program, runCommand);
registerImportCommands(program, runCommand);

program.parseAsync().catch((error: unknown) => {
  console.error(explain(error));
  process.exitCode = 1;
});
