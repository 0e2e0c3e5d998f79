import type { INestApplicationContext } from '@nestjs/common';
import { Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from '../platform/errors/operator-error';
import { bold } from './colors';
import { prompt } from './terminal';

interface Needs {
  /** Whether the command uses the database; false if it only reads declarations in the code. */
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

interface RequiredOption {
  flags: string;
  description: string;
  /** The name of the value in the question and in the error. */
  noun: string;
  question: string;
  example: string;
}

/** What a command works with. */
export interface Context {
  app: INestApplicationContext;
  signal: AbortSignal;
}

export class OperatorCommand extends Command {
  readonly examples: string[] = [];
  /** Values that a shell completes, by option such as `--scope`. */
  readonly optionValues = new Map<string, readonly string[]>();
  private readonly required: (Omit<RequiredOption, 'flags' | 'description'> & { option: Option })[] = [];

  constructor(
    name: string,
    private readonly runner: CommandRunner,
  ) {
    super(name);
    this.addHelpText('after', () => (this.examples.length > 0 ? examplesText(this.examples) : ''));
  }

  override createCommand(name: string): OperatorCommand {
    return new OperatorCommand(name, this.runner);
  }

  /**
   * An option whose missing value is prompted for. Without a terminal, the error names the option and an
   * example.
   */
  needs({ flags, description, ...missing }: RequiredOption, parse?: (text: string) => unknown): this {
    const option = new Option(flags, `${description} (required)`);
    if (parse) option.argParser(parse);
    this.required.push({ option, ...missing });
    return this.addOption(option);
  }

  json(): this {
    return this.option('--json', 'print one JSON object per line');
  }

  /** Values that a shell completes after an option that also accepts other values or several. */
  completes(option: string, values: readonly string[]): this {
    this.optionValues.set(option, values);
    return this;
  }

  /** Shown in the help, and on the page about commands. */
  example(...lines: string[]): this {
    this.examples.push(...lines);
    return this;
  }

  /** What the command does with its arguments and options. */
  handler<Values extends unknown[]>(
    work: (context: Context, ...values: Values) => Promise<void>,
    needs?: Needs,
  ): this {
    return this.action(async (...values) => {
      await this.askForMissing(this.opts());
      await this.runner((app, signal) => work({ app, signal }, ...(values as Values)), needs);
    });
  }

  private async askForMissing(options: Record<string, unknown>): Promise<void> {
    for (const { option, noun, question, example } of this.required) {
      const name = option.attributeName();
      if (options[name] !== undefined) continue;
      const missing = new UsageError(`The ${noun} is missing. Use ${option.long} ${example}.`);
      const text = await prompt(question, missing, new AbortController().signal);
      try {
        options[name] = option.parseArg ? option.parseArg(text, undefined) : text;
      } catch (error) {
        throw error instanceof InvalidArgumentError ? new UsageError(error.message) : error;
      }
    }
  }
}

export const examplesText = (lines: readonly string[]) =>
  ['', bold('Examples:'), ...lines.map((line) => `  gamewharf ${line}`)].join('\n');

/** The commands of a file: each adds its arguments, options, subcommands and handler. */
export type Commands = Readonly<Record<string, (command: OperatorCommand) => void>>;

/** A command that consists of subcommands. */
export const subcommands = (commands: Commands) => (parent: OperatorCommand) => {
  for (const [name, register] of Object.entries(commands)) register(parent.command(name));
};

/** Reads an argument of a command. */
export const integerParser =
  (from: number, to: number, problem: string) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < from || number > to) throw new InvalidArgumentError(problem);
    return number;
  };

export const GAME_HELP = 'game as owner/slug, such as ash-beetle/brave-arcade, or its ID';

export const GAME_OPTION: RequiredOption = {
  flags: '--game <GAME>',
  description: GAME_HELP,
  noun: 'game',
  question: 'Game, as owner/slug or ID:',
  example: 'ash-beetle/brave-arcade',
};

export const userOption = (description: string): RequiredOption => ({
  flags: '--user <USERNAME>',
  description,
  noun: 'user',
  question: 'Username:',
  example: 'ash-beetle',
});

export const parseId = integerParser(1, Number.MAX_SAFE_INTEGER, 'Use a numeric ID.');
export const parseCount = integerParser(1, 1000, 'Use a number from 1 to 1000.');
