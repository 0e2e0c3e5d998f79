/* eslint-disable @typescript-eslint/no-require-imports -- the services behind a command take up to a second to load */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Help, type Option } from 'commander';
import { bold, red } from './colors';
import { type CommandRunner, type Commands, examplesText, OperatorCommand } from './operator-command';

type Group = Readonly<Record<string, readonly [description: string, file: string]>>;

/**
 * Commands by heading and name: the description, and the file `<file>.command.ts`, which is loaded when the command
 * runs.
 */
const COMMANDS: Readonly<Record<string, Group>> = {
  'Service:': {
    start: [
      'Start the service (default command). Uses the embedded database if DATABASE_URL is not set.',
      'start',
    ],
    mock: [
      'Start a service for tests, with an empty database that is deleted at the end, and with routes to reset it and to make it fail.',
      'mock',
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
  },
  'Users, games and sales:': {
    users: ['Manage user accounts.', 'users'],
    games: ['Create, price and list games.', 'games'],
    files: ['Manage the files that players download.', 'files'],
    sell: ['Sell a game and print its download key.', 'sales'],
    refund: ['Refund a purchase and revoke its download keys.', 'sales'],
    give: ['Create a download key without a purchase and print it.', 'sales'],
    purchases: ['List and search purchases.', 'sales'],
    webhooks: ['Manage webhooks, and test them.', 'webhooks'],
    collections: ['Manage collections of games.', 'collections'],
  },
  'Records:': {
    import: [
      'Import records from a file or standard input. If one record is invalid, nothing is imported.',
      'import',
    ],
    delete: ['Delete a record and its dependents. Fails if purchases or keys depend on it.', 'import'],
    demo: [
      'Generate the records of a demo store for import. The dates end on the current day. The same options generate the same records on the same day, except for the times of recent sales.',
      'import',
    ],
    reset: ['Reset the demo store to its initial state.', 'import'],
  },
  'Credentials and audit:': {
    keys: ['Manage API keys.', 'keys'],
    tokens: ['Create and revoke the JWTs of launched games.', 'tokens'],
    'signing-keys': ['Manage the keys that sign JWTs.', 'signing-keys'],
    'operator-tokens': [
      'Manage the tokens that your own programs use for the routes under /operator/.',
      'operator-tokens',
    ],
    scopes: ['List all scopes and the scope that each route requires.', 'scopes'],
    audit: ['Read the audit log.', 'audit'],
  },
  'Shell:': {
    completion: ['Print a shell completion script.', 'completion'],
  },
};

const EXAMPLES = [
  'users create me --developer',
  'games create --user me --title "My game" --price 4.99',
  'sell --game me/my-game --to player@example.com',
  'purchases list --buyer player@example.com',
];

/** Adds the commands. Only those among `words` can run; the others are listed in the help. */
export function addCommands(program: Command, run: CommandRunner, words?: readonly string[]): Command {
  const all = Object.entries(COMMANDS).flatMap(([heading, group]) =>
    Object.entries(group).map(([name, one]) => [heading, name, one] as const),
  );
  for (const [heading, name, [description, file]] of all) {
    const command = new OperatorCommand(name, run).copyInheritedSettings(program).description(description);
    program.addCommand(command.helpGroup(heading));
    if (words && !words.includes(name)) continue;
    const { commands } = require(`./${file}.command`) as { commands: Commands };
    commands[name]!(command);
  }
  return program;
}

/** Commander's errors, in the form of ours. */
function toSentence(error: string): string {
  const [, first = '', suggestion] = /^error: ([^\n]*)(?:\n\((.*)\))?\n?$/.exec(error) ?? [];
  if (first === '') return error.trimEnd();
  const [, argument] = /^missing required argument '(.*)'$/.exec(first) ?? [];
  if (argument !== undefined) return `The argument ${argument} is missing.`;
  const sentence = `${first[0]!.toUpperCase()}${first.slice(1)}`;
  return `${/[.?]$/.test(sentence) ? sentence : `${sentence}.`}${suggestion ? ` ${suggestion}` : ''}`;
}

/** Commander writes defaults and choices as JSON. */
const optionDescription = (option: Option): string =>
  new Help()
    .optionDescription(option)
    .replace(/\((choices|default): .*\)$/, (choices) => choices.replaceAll('"', ''));

/** The `gamewharf` command, with the subcommands that these words need; by default all. */
export const gamewharf = (words?: readonly string[]): Command =>
  addCommands(
    new Command('gamewharf')
      .description('Run and manage a Gamewharf store.')
      .version(readVersion(), '-v, --version', 'print the version')
      .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
      .configureOutput({ outputError: (text, write) => write(`${red(toSentence(text))}\n`) })
      .configureHelp({ styleTitle: bold, optionDescription })
      .addHelpText('after', () => examplesText(EXAMPLES)),
    (...work) => (require('./command-runner') as typeof import('./command-runner')).runCommand(...work),
    words,
  );

/** `help nope` and `nope --help` are the same error as `nope`; commander would print the help of everything. */
export function withoutUnknownHelp(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  for (const [i, word] of words.entries()) {
    if (word === 'help') {
      const topic = words[i + 1];
      const isKnown = topic === undefined || topic.startsWith('-') || findCommand(command, topic);
      return isKnown ? words : [...words.slice(0, i), ...words.slice(i + 1)];
    }
    const next: Command | undefined = findCommand(command, word);
    if (!next && command.commands.length > 0 && !word.startsWith('-'))
      return words.filter((one) => one !== '--help' && one !== '-h');
    if (!next) break;
    command = next;
  }
  return words;
}

const findCommand = (command: Command, name: string) => command.commands.find((one) => one.name() === name);

/** The version in package.json, two folders above this one, or three in the compiled code. */
function readVersion(): string {
  const file = ['../..', '../../..'].map((up) => join(__dirname, up, 'package.json')).find(existsSync)!;
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
