import type { INestApplicationContext } from '@nestjs/common';
import { type Command, InvalidArgumentError } from 'commander';

/**
 * Runs an operator's command with all services and the database. Starts the embedded database if it is not running.
 * Ctrl-C aborts the signal; an error is printed, with exit code 1.
 */
export type CommandRunner = (
  work: (app: INestApplicationContext, signal: AbortSignal) => Promise<void>,
  options?: {
    /** false: reads only the declarations in the code. */
    database?: boolean;
    /** Creates the store of the embedded database if there is none. */
    makesStore?: boolean;
  },
) => Promise<void>;

/** The commands of a file: each adds its arguments, options, subcommands and action. */
export type Commands = Readonly<Record<string, (command: Command, run: CommandRunner) => void>>;

/** Reads an argument of a command. */
export const wholeNumber =
  (from: number, to: number, problem: string) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < from || number > to) throw new InvalidArgumentError(problem);
    return number;
  };

export const idIn = wholeNumber(1, Number.MAX_SAFE_INTEGER, 'Use a numeric ID.');
export const countIn = wholeNumber(1, 1000, 'Use a number from 1 to 1000.');
