import type { INestApplicationContext } from '@nestjs/common';
import { Command, InvalidArgumentError } from 'commander';

interface Needs {
  /** false: reads only the declarations in the code. */
  database?: boolean;
  /** Creates the store of the embedded database if there is none. */
  createsStore?: boolean;
}

/**
 * Runs an operator's command with all services and the database. Starts the embedded database if it is not running.
 * Ctrl-C aborts the signal; an error is printed, with exit code 1.
 */
export type CommandRunner = (
  work: (app: INestApplicationContext, signal: AbortSignal) => Promise<void>,
  needs?: Needs,
) => Promise<void>;

/** What a command works with. */
interface Context {
  app: INestApplicationContext;
  signal: AbortSignal;
}

export class OperatorCommand extends Command {
  constructor(
    name: string,
    private readonly runner: CommandRunner,
  ) {
    super(name);
  }

  override createCommand(name: string): OperatorCommand {
    return new OperatorCommand(name, this.runner);
  }

  /** What the command does with its arguments and options. */
  handler<Given extends unknown[]>(
    work: (context: Context, ...given: Given) => Promise<void>,
    needs?: Needs,
  ): this {
    return this.action((...given) =>
      this.runner((app, signal) => work({ app, signal }, ...(given as Given)), needs),
    );
  }
}

/** The commands of a file: each adds its arguments, options, subcommands and handler. */
export type Commands = Readonly<Record<string, (command: OperatorCommand) => void>>;

/** Reads an argument of a command. */
export const integerParser =
  (from: number, to: number, problem: string) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < from || number > to) throw new InvalidArgumentError(problem);
    return number;
  };

/** The option for a game. */
export const GAME = [
  '--game <GAME>',
  'game as owner/slug, such as ash-beetle/brave-arcade, or its ID',
] as const;

export const parseId = integerParser(1, Number.MAX_SAFE_INTEGER, 'Use a numeric ID.');
export const parseCount = integerParser(1, 1000, 'Use a number from 1 to 1000.');
