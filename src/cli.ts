#!/usr/bin/env node
/* eslint-disable @typescript-eslint/no-require-imports -- `--version` and `--help` don't need the settings */
import 'reflect-metadata';
import { gamewharf, withoutUnknownHelp } from './commands/program';
import { UsageError } from './platform/errors/operator-error';
import { red } from './commands/colors';

const environment = () =>
  require('./platform/config/environment') as typeof import('./platform/config/environment');

// Commander's default command would treat a mistyped subcommand as its argument.
const words = process.argv.length > 2 ? process.argv.slice(2) : ['start'];
const program = gamewharf(words);
program.parseAsync(withoutUnknownHelp(program, words), { from: 'user' }).catch((error: unknown) => {
  console.error(red(environment().explain(error)));
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
