// Writes the generated pages of docs/reference from the build in dist. With --check it only compares.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';
import { getMetadataStorage } from 'class-validator';
import prettier from 'prettier';
import {
  code,
  importRecordsPage,
  limitsPage,
  observabilityPage,
  privacyPage,
  table,
  WRITTEN,
} from './reference-tables.mjs';

const load = createRequire(import.meta.url);
load('reflect-metadata');
const { Settings, SECRET_NAMES } = load('../../dist/src/platform/config/settings.js');
const { gamewharf } = load('../../dist/src/commands/program.js');
const { SCOPES } = load('../../dist/src/auth/access/scopes.js');

/** The groups of .env.example, each with its settings and their comments. */
function settingGroups() {
  const [, ...groups] = readFileSync('.env.example', 'utf8').split(/^## /m);
  return groups.map((group) => ({
    heading: group.split('\n')[0],
    settings: [...group.matchAll(/((?:^# .*\n)+)([A-Z0-9_]+)=/gm)].map(([, comment, name]) => [
      name,
      comment.replace(/^# /gm, '').trim().replaceAll('\n', ' '),
    ]),
  }));
}

/** The validation rules of a setting. */
function allowed(name) {
  const rules = getMetadataStorage()
    .getTargetValidationMetadatas(Settings, '', true, false)
    .filter(({ propertyName }) => propertyName === name);
  const words = rules.flatMap(({ name: rule, constraints, message }) => {
    if (rule === 'isIn') return [constraints[0].join(', ')];
    if (rule === 'rateLimits') return ['off, or limits'];
    if (rule === 'addressRanges') return ['IP addresses, ranges or their names'];
    if (typeof message === 'string')
      return [
        message
          .replace(/^\$property must (be )?| in \$property/g, '')
          .replace(/^(start|contain)\b/, '$1s')
          .replace(/^not begin with (\S+):.*/, 'not beginning with $1')
          .replace(/^(an?|the) /, '')
          .replace(/(?:a )?whole number from (\d+) to/, '$1 to'),
      ];
    return rule === 'minLength' && constraints[0] > 1 ? [`at least ${constraints[0]} characters`] : [];
  });
  return words.join(', ') || 'text';
}

function settingsPage() {
  const defaults = new Settings();
  const row = ([name, description]) => [
    code(name),
    code([defaults[name] ?? ''].flat().join(' ')),
    allowed(name),
    description,
  ];
  const sections = settingGroups().map(
    ({ heading, settings }) =>
      `## ${heading}\n\n${table(['setting', 'default', 'allowed values', 'description'], ...settings.map(row))}`,
  );
  return `# Settings

${WRITTEN}

A setting is an environment variable or a line of the file \`.env\` in the working directory of the service. The environment takes
precedence. An empty value selects the default. If a value is invalid, the service doesn't start and lists all invalid values.

To read a secret from a file, set its name followed by \`_FILE\` to the path. This is supported for ${SECRET_NAMES.map(code).join(', ')}.

${sections.join('\n\n')}
`;
}

/** Commands about the service and its credentials; the others manage the contents of the store. */
const SERVICE_COMMANDS =
  /^(start|mock|migrate|backup|restore|keys|tokens|signing-keys|operator-tokens|audit|scopes|completion)\b/;

/** Options with the same meaning in all commands, which the introduction describes. */
const COMMON_OPTIONS = ['--json', '--yes'];

function commandsPage(title, introduction, isShown) {
  const sections = [];
  const visit = (command, words) => {
    const help = command.createHelp();
    const inner = help.visibleCommands(command).filter((one) => one.name() !== 'help');
    if (inner.length === 0 && isShown(words)) {
      const names = help.visibleArguments(command).map((one) => `- ${code(one.name())}: ${one.description}`);
      const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
      const flags = options
        .filter(({ long }) => !COMMON_OPTIONS.includes(long))
        .map((one) => `- ${code(one.flags)}: ${help.optionDescription(one)}`);
      const usage = help
        .commandUsage(command)
        .trim()
        .replace(/ \[options\]/, options.length ? '$&' : '');
      sections.push(
        [
          `## ${words}`,
          help.commandDescription(command),
          `    ${usage}`,
          [...names, ...flags].join('\n'),
          command.examples?.length > 0 &&
            `Examples:\n\n${command.examples.map((line) => `    gamewharf ${line}`).join('\n')}`,
        ]
          .filter(Boolean)
          .join('\n\n'),
      );
    }
    for (const one of inner) visit(one, `${words} ${one.name()}`.trim());
  };
  visit(gamewharf(), '');
  return `# ${title}

${WRITTEN}

${introduction}

${sections.join('\n\n')}
`;
}

function scopesPage() {
  const env = { PATH: process.env.PATH, NODE_ENV: 'development' };
  const lines = execFileSync(process.execPath, ['dist/src/cli.js', 'scopes'], {
    env,
    encoding: 'utf8',
  }).split('\n\n')[1];
  const routes = lines
    .trim()
    .split('\n')
    .map((line) => line.match(/^(\S+) +(\S+) +(.*)$/).slice(1));
  const of = (access) =>
    routes
      .filter((route) => route[2].split(' or ').includes(access))
      .map(([method, path]) => code(`${method} ${path}`))
      .join(', ');
  const needsScope = ([, , access]) => access.split(' or ').every((one) => one in SCOPES);
  const others = routes.filter((route) => !needsScope(route) && !['public', 'signed in'].includes(route[2]));
  const listed = (wanted) =>
    routes
      .filter(([, , access]) => access === wanted)
      .map(([method, path]) => code(`${method} ${path}`))
      .join(', ');
  return `# Scopes

${WRITTEN}

A scope limits what a credential can do. It includes every scope that begins with its name and a colon: \`game:view\` includes
\`game:view:ownership\`. A route in several rows accepts any of these scopes. For details, see [Credentials](credentials.md).

${table(['scope', 'description', 'routes that require it'], ...Object.entries(SCOPES).map(([scope, text]) => [code(scope), text, of(scope)]))}

These routes require something else. Permissions that begin with \`operator\` are those of [operator tokens](credentials.md#operator-tokens).

${table(['route', 'requires'], ...others.map(([method, path, access]) => [code(`${method} ${path}`), access]))}

\`POST /docs/key\` and the [account pages](accounts.md) below \`/user/\` require a signed-in user, except \`/user/oauth\`, which shows the sign-in page itself, and the page after an erasure. \`gamewharf scopes\` lists them.

These routes are public: ${listed('public')}.
`;
}

const pages = {
  'docs/reference/settings.md': settingsPage(),
  'docs/reference/commands.md': commandsPage(
    'Commands',
    'These commands run the service and manage its database, credentials and audit log. The commands for games, users, sales and files are ' +
      '[store commands](store-commands.md).\n\n' +
      'In a clone of the repository, run commands with `npm run --silent gamewharf --`; with the package, run `gamewharf`. All commands have `--help`, and ' +
      '`gamewharf --version` prints the version. Commands use the same [settings](settings.md) as the service.\n\n' +
      'Lists and reports print one JSON object per line with `--json`, and `--yes` skips a confirmation. The exit code is 0 after a success, 1 after an error, 2 if the command line is wrong or incomplete, and 130 after Ctrl-C. ' +
      'In a terminal, a command asks for missing values, prints headings in bold and errors in red, unless `NO_COLOR` is set.',
    (words) => SERVICE_COMMANDS.test(words),
  ),
  'docs/reference/store-commands.md': commandsPage(
    'Store commands',
    'These commands manage users, games, sales, webhooks, collections and files. [Commands](commands.md) describes how to run ' +
      'them, and the options `--json` and `--yes`.',
    (words) => !SERVICE_COMMANDS.test(words),
  ),
  'docs/reference/scopes.md': scopesPage(),
  'docs/reference/observability.md': await observabilityPage(
    readFileSync('docs/reference/observability.md', 'utf8'),
  ),
  'docs/reference/limits.md': limitsPage(readFileSync('docs/reference/limits.md', 'utf8')),
  'docs/explanation/privacy.md': privacyPage(readFileSync('docs/explanation/privacy.md', 'utf8')),
  'docs/reference/import-records.md': importRecordsPage(
    readFileSync('docs/reference/import-records.md', 'utf8'),
  ),
};
const stale = [];
for (const [path, text] of Object.entries(pages)) {
  const options = await prettier.resolveConfig(path);
  const formatted = await prettier.format(text, { ...options, filepath: path });
  if (!process.argv.includes('--check')) writeFileSync(path, formatted);
  else if (readFileSync(path, 'utf8') !== formatted) stale.push(path);
}
if (stale.length > 0) {
  console.error(`Run npm run docs:reference: the code has changed for ${stale.join(', ')}.`);
  process.exitCode = 1;
}
