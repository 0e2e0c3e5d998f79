#!/usr/bin/env node
import 'reflect-metadata';
import { explain } from './platform/config/environment';
import { program } from './commands/program';

// Not commander's default command, which would take a mistyped one for its argument.
const words = process.argv.slice(2);
program.parseAsync(words.length > 0 ? words : ['start'], { from: 'user' }).catch((error: unknown) => {
  console.error(explain(error));
  process.exitCode = 1;
});
